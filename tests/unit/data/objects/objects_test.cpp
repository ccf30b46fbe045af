#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <dtrain/data/objects.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

Annotation object_at(double left, double top, double width, double height, std::int32_t label = 0) {
  Annotation object{.id = 5, .label = label, .box = {left, top, width, height}, .area = width * height};
  object.polygons = {{left, top, left + width, top, left + width, top + height, left, top + height}};
  return object;
}

Annotations two_objects() {
  Annotation crowd{.id = 6, .label = 1, .crowd = true, .box = {0, 0, 4, 2}, .area = 3, .runs = {2, 3, 3}};
  return {2, 4, {object_at(0, 0, 1, 1, 2), crowd}};
}

TEST(ObjectsBlock, KeepsObjects) {
  const Annotations found = read_objects_block(bytes_of(objects_block(two_objects())));
  EXPECT_EQ(found.height, 2);
  EXPECT_EQ(found.width, 4);
  ASSERT_EQ(found.objects.size(), 2u);
  EXPECT_EQ(found.objects[0].id, 5u);
  EXPECT_EQ(found.objects[0].label, 2);
  EXPECT_EQ(found.objects[0].polygons, two_objects().objects[0].polygons);
  EXPECT_TRUE(found.objects[1].crowd);
  EXPECT_EQ(found.objects[1].area, 3);
  EXPECT_EQ(found.objects[1].box, (PixelBox{0, 0, 4, 2}));
  EXPECT_EQ(found.objects[1].runs, (std::vector<std::uint32_t>{2, 3, 3}));
}

TEST(ObjectsBlock, SaysWhatIsWrongWithIt) {
  std::string block = objects_block(two_objects());
  block.back() = static_cast<char>(block.back() ^ 1);
  expect_error([&] { read_objects_block(bytes_of(block)); }, "differ from their checksum");
  expect_error([&] { read_objects_block(bytes_of(block).first(8)); }, "do not begin as objects do");
  block[4] = 9;
  expect_error([&] { read_objects_block(bytes_of(block)); }, "are of version 9");
}

TEST(ObjectsBlock, LabelsAreMxnetsWithoutCrowds) {
  const std::vector<float> labels = detection_labels(two_objects(), 100);
  EXPECT_EQ(labels, (std::vector<float>{3, 5, 100, 2, 0, 0, 0.25f, 0.5f}));
  EXPECT_TRUE(has_boxes(labels));
  EXPECT_EQ(box_classes(labels), std::vector<std::int32_t>{2});
  const std::vector<float> none = detection_labels({2, 4, {}}, 100);
  EXPECT_EQ(none, (std::vector<float>{3, 5, 100, -1, 0, 0, 1, 1}));
  EXPECT_TRUE(has_boxes(none));
  EXPECT_TRUE(box_classes(none).empty());
}

TEST(ObjectsBlock, OtherLabelsAreNoBoxes) {
  EXPECT_FALSE(has_boxes(std::vector<float>{2}));
  EXPECT_FALSE(has_boxes(std::vector<float>{2, 5}));
  EXPECT_FALSE(has_boxes(std::vector<float>{2, 5, 1, 0, 0, 1}));
  EXPECT_FALSE(has_boxes(std::vector<float>{2.5f, 5, 1, 0, 0, 1, 1}));
  EXPECT_TRUE(has_boxes(std::vector<float>{2, 6, 1, 0, 0, 1, 1, 0}));
  EXPECT_TRUE(has_boxes(std::vector<float>{4, 5, 640, 480, 1, 0, 0, 1, 1}));
}

TEST(Objects, OfARecordWithoutThemComeFromItsLabels) {
  Record record;
  record.labels = {2, 6, 1, 0.25f, 0.5f, 0.75f, 1, 0, -1, 0, 0, 0, 0, 0};
  const Annotations found = annotations_of(record, 4, 8);
  ASSERT_EQ(found.objects.size(), 1u);
  EXPECT_EQ(found.objects[0].label, 1);
  EXPECT_EQ(found.objects[0].box, (PixelBox{2, 2, 4, 2}));
  record.labels[3] = std::numeric_limits<float>::quiet_NaN();
  expect_error([&] { annotations_of(record, 4, 8); }, "the box 1 holds nan");
  record.labels = {4};
  expect_error([&] { annotations_of(record, 4, 8); }, "a class for its whole picture and no boxes");
}

TEST(Objects, BelongToAPictureOfTheirShape) {
  const std::string block = objects_block({480, 640, {}});
  Record record;
  record.objects = bytes_of(block);
  EXPECT_EQ(annotations_of(record, 256, 341).width, 640);
  expect_error([&] { annotations_of(record, 640, 480); },
               "of 480x640 pixels, and its objects are of a picture of 640x480");
}

TEST(Objects, NameTheirFaults) {
  const auto fault = [](const Annotation& object) { return fault_of(object, 10, 20).value_or("none"); };
  EXPECT_EQ(fault(object_at(1, 1, 5, 5)), "none");
  EXPECT_EQ(fault(object_at(15, 5, 50, 50)), "none");  // reaches over the edge
  EXPECT_EQ(fault(object_at(1, 1, 0, 5)), "its box has no area");
  EXPECT_EQ(fault(object_at(20, 1, 5, 5)), "its box lies outside of the picture");
  EXPECT_EQ(fault(object_at(std::nan(""), 1, 5, 5)), "its box holds what is no number");
  Annotation object = object_at(1, 1, 5, 5);
  object.polygons = {{1, 1, 2, 2}};
  EXPECT_EQ(fault(object), "a polygon of its mask has fewer than three corners");
  object.polygons = {{12, 8, 14, 8, 14, 9}};
  EXPECT_EQ(fault(object), "its mask lies outside of its box");
  object.polygons.clear();
  object.runs = {3, 4};
  EXPECT_EQ(fault(object), "its mask is for a picture of another size");
  object.runs = {190, 5, 5};
  EXPECT_EQ(fault(object), "its mask lies outside of its box");
  object.runs = {10, 5, 185};
  EXPECT_EQ(fault(object), "none");
}

TEST(Objects, OfLabelsNameTheirFaults) {
  const auto fault = [](float label) { return fault_of_row(std::vector<float>{label, 0, 0, 1, 1}).value_or("none"); };
  EXPECT_EQ(fault(16777216), "none");
  EXPECT_EQ(fault(-1), "none");
  EXPECT_EQ(fault(0.5f), "its class is no whole number");
  EXPECT_EQ(fault(2e7f), "its class is too large");
}

TEST(Objects, SidesFitAllLimits) {
  const auto size = [](int h, int w, const DetectionInput& options) {
    const ScaledSize found = scaled_size(h, w, options, 800, 1344);
    return std::pair(found.height, found.width);
  };
  EXPECT_EQ(size(480, 640, {800, 1333}), std::pair(800, 1067));
  EXPECT_EQ(size(300, 1000, {800, 1333}), std::pair(400, 1333));
  EXPECT_EQ(size(640, 480, {800, 1333}), std::pair(800, 600));  // the room is no higher
  EXPECT_EQ(size(400, 672, {}), std::pair(800, 1344));
  EXPECT_EQ(size(10, 1000, {5, 0}), std::pair(5, 500));
}

TEST(Objects, APictureBelongsToTheGroupInWhichItBecomesLargest) {
  const std::vector<ScaledSize> groups = {{800, 1344}, {1344, 800}, {800, 1088}};
  EXPECT_EQ(group_for(480, 640, groups), 2u) << "as large as in the first, with less around it";
  EXPECT_EQ(group_for(640, 480, groups), 1u);
  EXPECT_EQ(group_for(427, 640, groups), 0u) << "3:2 is as high as the group there alone";
  EXPECT_EQ(group_for(500, 500, groups), 2u) << "of equals the smallest";
  EXPECT_EQ(group_for(500, 500, std::vector<ScaledSize>{{800, 1344}, {1344, 800}}), 0u) << "or the first";
  const DetectionInput input{.groups = groups};
  EXPECT_EQ(scaled_size(480, 640, input, 1344, 1344), (ScaledSize{800, 1067})) << "whatever surrounds it";
  EXPECT_EQ(scaled_size(640, 480, input, 1344, 1344), (ScaledSize{1067, 800}));
  EXPECT_EQ(scaled_size(640, 480, input, 1344, 700), (ScaledSize{933, 700}));
}

TEST(Objects, TheSizeOfAPictureIsKnownBeforeItIsDecoded) {
  const std::string block = objects_block({480, 640, {}});
  Image scratch;
  Record record;
  record.objects = bytes_of(block);
  EXPECT_EQ(picture_size(record, scratch), (ScaledSize{480, 640}));
  EXPECT_TRUE(scratch.pixels.empty());
  const std::string picture = encode_image({1, 2, 3, {0, 0, 0, 0, 0, 0}}, Encoding::raw);
  Record plain;
  plain.payload = bytes_of(picture);
  EXPECT_EQ(picture_size(plain, scratch), (ScaledSize{2, 3}));
  record.objects = record.objects.first(14);
  EXPECT_THROW(picture_size(record, scratch), DataError);
}

TEST(Objects, AreScaledMirroredAndCut) {
  nn::PictureObjects objects;
  scale_objects(two_objects(), {4, 8}, false, {.masks = true}, 5, 9, objects);
  ASSERT_EQ(objects.boxes.size(), 2u);
  EXPECT_EQ(objects.boxes[0].right, 2);
  EXPECT_EQ(objects.boxes[0].bottom, 2);
  EXPECT_EQ(objects.classes, (std::vector<std::int32_t>{2, 1}));
  EXPECT_EQ(objects.crowd, (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(objects.height, 4);
  EXPECT_EQ(objects.width, 8);
  EXPECT_EQ(objects.scale, 2);
  EXPECT_EQ(objects.original_width, 4);
  const std::vector<std::uint8_t> masks = objects.masks;
  ASSERT_EQ(masks.size(), 2u * 5 * 9);
  const auto at = [](const std::vector<std::uint8_t>& all, int k, int y, int x) {
    return all[static_cast<std::size_t>((k * 5 + y) * 9 + x)];
  };
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 9; ++x) {
      EXPECT_EQ(at(masks, 0, y, x), y < 2 && x < 2) << y << " " << x;
      // The runs 2, 3, 3 down columns of 2: column 1 and the upper half of column 2, each pixel now 2x2.
      const int column = x / 2, row = y / 2;
      EXPECT_EQ(at(masks, 1, y, x), y < 4 && x < 8 && (column == 1 || (column == 2 && row == 0))) << y << " " << x;
    }
  }
  scale_objects(two_objects(), {4, 8}, true, {.masks = true}, 5, 9, objects);
  EXPECT_EQ(objects.boxes[0].left, 6);
  EXPECT_EQ(objects.boxes[0].right, 8);
  for (int k = 0; k < 2; ++k) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 8; ++x) EXPECT_EQ(at(objects.masks, k, y, x), at(masks, k, y, 7 - x));
      EXPECT_EQ(at(objects.masks, k, y, 8), 0);
    }
  }
  scale_objects({2, 4, {object_at(3, 1, 5, 5), object_at(4, 0, 1, 1)}}, {2, 4}, false, {}, 2, 4, objects);
  ASSERT_EQ(objects.boxes.size(), 1u);
  EXPECT_EQ(objects.boxes[0].right, 4);
  EXPECT_EQ(objects.boxes[0].bottom, 2);
  EXPECT_TRUE(objects.masks.empty());
  EXPECT_TRUE(objects.runs.empty());
}

TEST(Objects, MasksTakeNoMoreThanTwiceTheirMemory) {
  constexpr std::size_t kRoom = 5 * 9;
  nn::PictureObjects objects;
  const auto capacity = [&](std::size_t count) {
    Annotations annotations{2, 4, std::vector<Annotation>(count, object_at(0, 0, 1, 1))};
    scale_objects(annotations, {4, 8}, false, {.masks = true}, 5, 9, objects);
    EXPECT_EQ(objects.masks.size(), count * kRoom);
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(objects.masks, 1)), 4 * count);
    return objects.masks.capacity();
  };
  EXPECT_EQ(capacity(9), 9 * kRoom) << "no room is made for more";
  EXPECT_EQ(capacity(5), 9 * kRoom) << "memory is used again";
  EXPECT_EQ(capacity(2), 2 * kRoom) << "much more than is needed is let go of";
  EXPECT_EQ(capacity(0), 0u);
}

TEST(Objects, KeepTheirMasksInPixelsOfTheOriginalPicture) {
  nn::PictureObjects objects;
  Annotations annotations = two_objects();
  annotations.objects.push_back(object_at(1, 0, 1, 1));
  annotations.objects.back().polygons.clear();
  for (int time = 0; time < 2; ++time) scale_objects(annotations, {4, 8}, false, {.runs = true}, 5, 9, objects);
  EXPECT_TRUE(objects.masks.empty());
  ASSERT_EQ(objects.runs.size(), 3u);
  EXPECT_EQ(objects.runs[0], mask_of(annotations.objects[0], 2, 4).runs);
  EXPECT_EQ(objects.runs[1], (std::vector<std::uint32_t>{2, 3, 3}));
  EXPECT_EQ(objects.runs[2], (std::vector<std::uint32_t>{8}));  // it has none
}

}  // namespace
}  // namespace dtrain::data
