#include <gtest/gtest.h>

#include <dtrain/data/coco.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

const char* const kFile = R"({"info": {"year": 2017}, "annotations": [
  {"id": 9, "image_id": 3, "category_id": 18, "bbox": [1, 2, 3.5, 4], "area": 9.25, "iscrowd": 0,
   "segmentation": [[1, 2, 4, 2, 4, 6], [1, 1, 2, 1, 2, 2, 1, 2]]},
  {"id": 10, "image_id": 3, "category_id": 5, "bbox": [0, 0, 2, 2], "iscrowd": 1,
   "segmentation": {"size": [10, 20], "counts": [5, 15, 180]}},
  {"id": 11, "image_id": 4, "category_id": 7, "bbox": [0, 0, 2, 2], "segmentation": {"size": [9, 20], "counts": "0"}},
  {"id": 12, "image_id": 3, "category_id": 5, "bbox": [0, 0, 2, 2], "segmentation": {"size": [20, 10], "counts": [200]}}],
 "images": [{"id": 3, "file_name": "a.jpg", "width": 20, "height": 10}, {"id": 4, "file_name": "b.jpg"}],
 "categories": [{"id": 18, "name": "dog"}, {"id": 5, "name": "cat"}]})";

TEST(CocoJson, IsReadWithItsMasks) {
  const CocoSet set = read_coco(kFile, "x.json", true);
  ASSERT_EQ(set.categories.size(), 2u);
  EXPECT_EQ(set.categories[0].name, "cat");
  ASSERT_EQ(set.pictures.size(), 2u);
  EXPECT_EQ(set.pictures[0].width, 20);
  ASSERT_EQ(set.objects.size(), 4u);
  const Annotation& dog = set.objects[0].annotation;
  EXPECT_EQ(dog.label, 1);
  EXPECT_EQ(dog.box, (PixelBox{1, 2, 3.5, 4}));
  EXPECT_EQ(dog.area, 9.25);
  ASSERT_EQ(dog.polygons.size(), 2u);
  EXPECT_EQ(dog.polygons[0], (std::vector<double>{1, 2, 4, 2, 4, 6}));
  EXPECT_TRUE(set.objects[1].annotation.crowd);
  EXPECT_EQ(set.objects[1].annotation.area, 4);
  EXPECT_EQ(set.objects[1].annotation.runs, (std::vector<std::uint32_t>{5, 15, 180}));
  EXPECT_EQ(set.objects[2].annotation.label, -1);
  EXPECT_FALSE(set.objects[2].fault.empty());
  EXPECT_EQ(set.objects[3].fault, "its mask is of 10x20 pixels and its picture of 20x10");
  EXPECT_TRUE(read_coco(kFile, "x.json", false).objects[0].annotation.polygons.empty());
}

TEST(CocoJson, SaysWhatIsMissingAndWhere) {
  expect_error([] { read_coco("{}", "x.json", true); }, "x.json: the key \"images\" is missing");
  expect_error([] { read_coco("{", "x.json", true); }, "x.json: not valid JSON at byte 2");
  expect_error([] { read_coco(R"({"images": [{}], "annotations": [], "categories": []})", "x.json", true); },
               "x.json: JSON: the key \"id\" is missing");
  expect_error([] { read_coco(R"({"images": [{"id": -1}], "annotations": [], "categories": []})", "x.json", true); },
               "image id -1 is negative");
}

}  // namespace
}  // namespace dtrain::data
