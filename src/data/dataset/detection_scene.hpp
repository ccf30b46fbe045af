// One scene of the set shapes-detection.
#pragma once

#include <span>

#include <dtrain/data/image.hpp>
#include <dtrain/data/objects.hpp>

#include "outlines.hpp"

namespace dtrain::data {

inline constexpr int kSceneSide = 256;
// The labels of the set are the positions here, which are those of the first of kShapeNames.
inline constexpr std::span<const std::string_view> kSceneClasses = std::span(kShapeNames).first(6);

struct SceneKey {
  std::uint64_t seed = 0;
  std::uint32_t split = 0, number = 0;
};

// What the scene shows: 2 to 8 shapes of very different sizes that hide parts of each other and reach over its edges,
// and bars before them. Masks are the pixels whose middle is seen of a shape, boxes are the smallest around them. A
// pure function of its arguments, on every CPU, as is the picture.
Annotations scene_objects(const Outlines& outlines, const SceneKey& key);
Image paint_scene(const Outlines& outlines, const SceneKey& key);

}  // namespace dtrain::data
