#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <dtrain/base/hash.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/prepare.hpp>

#include "data/temporary_folder.hpp"
#include "dataset/detection_scene.hpp"

namespace dtrain::data {
namespace {

TEST(ShapesDetection, AreTheSameOnEveryCpu) {
  const Outlines outlines;
  EXPECT_EQ(sha256_hex(bytes_of(objects_block(scene_objects(outlines, {1, 0, 7})))).substr(0, 16), "3db113a46bfe89fb");
  const Image image = paint_scene(outlines, {1, 0, 7});
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(image.pixels))).substr(0, 16), "75718f0c8e55ac8e");
}

TEST(ShapesDetection, HaveBoxesThatEncloseWhatIsSeen) {
  const Outlines outlines;
  std::set<std::int32_t> classes;
  std::size_t objects = 0, small = 0, large = 0, hidden = 0;
  for (std::uint32_t number = 0; number < 60; ++number) {
    const Annotations scene = scene_objects(outlines, {1, 0, number});
    std::vector<std::uint8_t> owners(kSceneSide * kSceneSide), mask(owners.size());
    for (const Annotation& object : scene.objects) {
      EXPECT_FALSE(fault_of(object, kSceneSide, kSceneSide).has_value());
      const Rle runs = mask_of(object, kSceneSide, kSceneSide);
      EXPECT_EQ(object.box, mask_box(runs));
      EXPECT_EQ(object.area, static_cast<double>(mask_area(runs)));
      decode_mask(runs, mask);
      for (std::size_t i = 0; i < mask.size(); ++i) owners[i] = static_cast<std::uint8_t>(owners[i] + mask[i]);
      classes.insert(object.label);
      ++objects;
      small += object.area < 32 * 32;
      large += object.area > 96 * 96;
      hidden += object.area < 0.5 * object.box.area();
    }
    EXPECT_LE(*std::ranges::max_element(owners), 1) << "a pixel shows one object";
  }
  EXPECT_EQ(classes.size(), kSceneClasses.size());
  EXPECT_GT(objects, 200u);
  EXPECT_GT(small, 20u);
  EXPECT_GT(large, 5u);
  EXPECT_GT(hidden, 20u);
}

TEST(ShapesDetection, BecomeRecordsThatDetectorsRead) {
  TemporaryFolder folder;
  PrepareOptions options;
  options.name = "shapes-detection";
  options.out = folder / "d";
  options.train_count = 12;
  options.val_count = 4;
  options.threads = 2;
  const PrepareResult result = prepare(options);
  EXPECT_EQ(result.train, folder / "d/shapes-detection_train.rec");
  EXPECT_EQ(result.val_records, 4u);
  EXPECT_EQ(verify_records(result.train).problem_count, 0u);
  EXPECT_EQ(class_names(std::span(&result.val, 1)).at(2), "triangle");
  EXPECT_TRUE(prepare(options).already_there);
  const Record record = RecordFile(result.val).read(0);
  EXPECT_TRUE(has_boxes(record.labels));
}

}  // namespace
}  // namespace dtrain::data
