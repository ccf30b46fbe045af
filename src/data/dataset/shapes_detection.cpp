// Drawn scenes with boxes and masks, as pictures to pack.
#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>

#include "detection_scene.hpp"
#include "photographs.hpp"
#include "sample_source.hpp"

namespace dtrain::data {
namespace {

class SceneStore : public PictureStore {
 public:
  SceneStore(std::uint64_t seed, Split split) : seed_(seed), split_(split) {}

  SceneKey key(std::uint64_t number) const {
    return {seed_, static_cast<std::uint32_t>(split_), static_cast<std::uint32_t>(number)};
  }
  Annotations objects(std::uint64_t number) const { return scene_objects(outlines_, key(number)); }

  SourceBytes read(const PackItem& item) const override {
    constexpr JpegOptions kFine{.quality = 92, .full_colour = false};
    const auto payload = std::make_shared<const std::string>(
        encode_image(paint_scene(outlines_, key(item.place)), Encoding::jpeg, kFine));
    return {item.file, bytes_of(*payload), payload};
  }
  std::string stamp(const PackItem&) const override { return fmt::format("scene of seed {}", seed_); }

 private:
  std::uint64_t seed_;
  Split split_;
  Outlines outlines_;
};

Pictures draw_scenes(std::uint64_t seed, Split split, std::uint32_t count) {
  auto store = std::make_unique<SceneStore>(seed, split);
  Pictures pictures;
  pictures.list.root = "shapes-detection";
  pictures.list.classes.assign(kSceneClasses.begin(), kSceneClasses.end());
  pictures.list.items.resize(count);
  for_each_in_parallel(count, [&](std::size_t i) {
    PackItem& item = pictures.list.items[i];
    const Annotations objects = store->objects(i);
    item.id = item.place = i;
    item.file = fmt::format("scene-{:06}.jpg", i);
    item.objects = objects_block(objects);
    item.labels = detection_labels(objects, item.objects.size());
  });
  pictures.store = std::move(store);
  return pictures;
}

}  // namespace

Photographs open_shapes_detection(const PrepareOptions& options) {
  constexpr std::uint32_t kTrain = 4000, kVal = 500;
  if (!options.from.empty())
    throw UsageError("shapes-detection is drawn by dtrain: setting 'from' has no meaning for it");
  const std::uint32_t train = options.train_count.value_or(kTrain), val = options.val_count.value_or(kVal);
  if (train == 0 || val == 0) throw UsageError("shapes-detection: both counts must be 1 or more");
  return {draw_scenes(options.seed, Split::train, train), draw_scenes(options.seed, Split::val, val)};
}

}  // namespace dtrain::data
