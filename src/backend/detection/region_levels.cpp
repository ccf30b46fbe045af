#include <dtrain/backend/detection.hpp>
#include <dtrain/base/math.hpp>

namespace dtrain::backend {
namespace {

// The power of two that is nearest to a level's size by the picture's.
float scale_of(int level, int picture) {
  float scale = 1;
  const float ratio = static_cast<float>(level) / static_cast<float>(picture);
  constexpr float kHalfStep = 0.70710678f;
  while (ratio < scale * kHalfStep) scale /= 2;
  return scale;
}

}  // namespace

// A region of 224 x 224 pixels is looked up in the level of stride 16, one of twice the side in the next. A side that
// is smaller by a millionth of a step counts as large enough.
std::vector<RegionLevel> region_levels(const nn::RegionAlign& layer) {
  constexpr double kUsualSide = 224, kUsualStride = 16, kTiny = 1e-6, kLogOf2 = 0.6931471805599453;
  const std::vector<nn::LevelPlace> places = nn::level_places(layer.levels);
  std::vector<RegionLevel> levels;
  double side = 0;  // of the next level
  for (std::size_t level = 0; level < static_cast<std::size_t>(layer.used); ++level) {
    const float scale = scale_of(places[level].height, layer.image_height);
    levels.push_back({scale, static_cast<float>(side * portable_exp(-kTiny * kLogOf2))});
    if (level == 0) side = kUsualSide / kUsualStride / static_cast<double>(scale);
    side *= 2;
  }
  return levels;
}

}  // namespace dtrain::backend
