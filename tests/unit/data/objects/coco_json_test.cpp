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
  expect_error([] { read_coco(" [{}]", "x.json", true); }, "x.json: is a list, such as of results");
  expect_error([] { read_coco(R"({"images": [{}], "annotations": [], "categories": []})", "x.json", true); },
               "x.json: an image: its \"id\" is missing");
  expect_error([] { read_coco(R"({"images": [{"id": -1}], "annotations": [], "categories": []})", "x.json", true); },
               "image id -1 is negative");
}

// A file with one image of 20x10 pixels, one category, and these annotations.
std::string file_of(const std::string& annotations) {
  return R"({"images": [{"id": 3, "file_name": "a.jpg", "width": 20, "height": 10}], "annotations": [)" + annotations +
         R"(], "categories": [{"id": 1, "name": "cat"}]})";
}

TEST(CocoJson, RefusesTwoImagesOfOneId) {
  expect_error(
      [] {
        read_coco(R"({"images": [{"id": 3, "file_name": "a.jpg"}, {"id": 4, "file_name": "b.jpg"},
                                 {"id": 3, "file_name": "c.jpg"}], "annotations": [], "categories": []})",
                  "x.json", false);
      },
      "x.json: two images have the id 3: a.jpg and c.jpg");
}

TEST(CocoJson, TakesWholeNumbersHoweverTheyAreWritten) {
  const CocoSet set = read_coco(R"({"images": [{"id": 3.0, "file_name": "a.jpg", "width": 20.0, "height": null}],
    "annotations": [{"id": 9.0, "image_id": 3.0, "category_id": 1.0, "bbox": [1, 2, 3, 4], "iscrowd": true,
                     "area": null}, {"image_id": 3, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": null}],
    "categories": [{"id": 1.0, "name": "cat"}]})",
                                "x.json", false);
  ASSERT_EQ(set.objects.size(), 2u);
  EXPECT_EQ(set.pictures[0].id, 3);
  EXPECT_EQ(set.objects[0].annotation.id, 9u);
  EXPECT_EQ(set.objects[0].picture, 3);
  EXPECT_EQ(set.objects[0].annotation.label, 0);
  EXPECT_TRUE(set.objects[0].annotation.crowd);
  EXPECT_EQ(set.objects[0].annotation.area, 12);
  EXPECT_EQ(set.objects[0].fault, "");
  EXPECT_FALSE(set.objects[1].annotation.crowd);
}

TEST(CocoJson, AnOddAnnotationIsItsOwnFault) {
  const auto fault = [](const std::string& members) {
    const CocoSet set = read_coco(
        file_of(R"({"id": 8, "image_id": 3, "category_id": 1, "bbox": [0, 0, 5, 5]}, {"id": 9, )" + members + "}"),
        "x.json", true);
    EXPECT_EQ(set.objects.at(0).fault, "");
    EXPECT_EQ(set.objects.at(1).annotation.id, 9u);
    return set.objects.at(1).fault;
  };
  const std::string ids = R"("image_id": 3, "category_id": 1, )", box = R"("bbox": [0, 0, 5, 5], )";
  EXPECT_EQ(fault(R"("image_id": 3, "category_id": 1)"), "its \"bbox\" is missing");
  EXPECT_EQ(fault(ids + R"("bbox": null)"), "its \"bbox\" is missing");
  EXPECT_EQ(fault(ids + R"("bbox": [])"), "its \"bbox\" is no list of four numbers");
  EXPECT_EQ(fault(ids + R"("bbox": [0, 0, "5", 5])"), "its \"bbox\" is no list of four numbers");
  EXPECT_EQ(fault(ids + box + R"("area": "25")"), "its \"area\" is no number");
  EXPECT_EQ(fault(ids + box + R"("iscrowd": "no")"), "its \"iscrowd\" is no whole number");
  EXPECT_EQ(fault(box + R"("image_id": 3, "category_id": 1.5)"), "its \"category_id\" is no whole number");
  EXPECT_EQ(fault(box + R"("image_id": "a", "category_id": 1)"), "its \"image_id\" is no whole number");
  EXPECT_EQ(fault(box + R"("category_id": 1)"), "its \"image_id\" is missing");
}

TEST(CocoJson, NamesTheImageOrCategoryThatIsOdd) {
  const auto read = [](const std::string& image, const std::string& category) {
    read_coco(R"({"images": [{"id": 3}, )" + image + R"(], "annotations": [], "categories": [)" + category + "]}",
              "x.json", false);
  };
  expect_error([&] { read(R"({"id": 4, "width": "20"})", ""); }, "x.json: image 4: its \"width\" is no number");
  expect_error([&] { read(R"({"id": 4, "file_name": 7})", ""); }, "x.json: image 4: its \"file_name\" is no text");
  expect_error([&] { read(R"({"id": "4"})", ""); }, "x.json: an image: its \"id\" is no whole number");
  expect_error([&] { read(R"({"id": 4})", R"({"id": 1, "name": 5})"); }, "x.json: category 1: its \"name\" is no text");
}

TEST(CocoJson, LosesPolygonsWithoutThreeCornersAlone) {
  const CocoSet set = read_coco(file_of(R"(
    {"id": 8, "image_id": 3, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": [[1, 1, 2, 2], [0, 0, 5, 0, 5, 5]]},
    {"id": 9, "image_id": 3, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": [[]]})"),
                                "x.json", true);
  EXPECT_EQ(set.objects[0].annotation.polygons, (std::vector<std::vector<double>>{{0, 0, 5, 0, 5, 5}}));
  EXPECT_FALSE(set.objects[1].annotation.has_mask());
  EXPECT_EQ(set.objects[1].fault, "");
}

TEST(CocoJson, OnePolygonNeedsNoListAroundIt) {
  const CocoSet set = read_coco(file_of(R"(
    {"id": 8, "image_id": 3, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": [0, 0, 5, 0, 5, 5]},
    {"id": 9, "image_id": 3, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": [1, 1, 2, 2]})"),
                                "x.json", true);
  EXPECT_EQ(set.objects[0].fault, "");
  EXPECT_EQ(set.objects[0].annotation.polygons, (std::vector<std::vector<double>>{{0, 0, 5, 0, 5, 5}}));
  EXPECT_EQ(set.objects[1].fault, "");
  EXPECT_EQ(set.objects[1].polygons_left_out, 1u);
}

TEST(CocoJson, AnObjectWithoutABoxHasThatOfItsMask) {
  const std::string text = file_of(R"(
    {"id": 8, "image_id": 3, "category_id": 1, "segmentation": [[1.5, 2, 6, 2, 6, 5], [1, 3, 2, 3, 2, 9]]},
    {"id": 9, "image_id": 3, "category_id": 1, "bbox": null,
     "segmentation": {"size": [10, 20], "counts": [10, 20, 170]}},
    {"id": 10, "image_id": 3, "category_id": 1, "segmentation": {"size": [10, 20], "counts": [200]}},
    {"id": 11, "image_id": 3, "category_id": 1, "segmentation": [[1, 1, 2, 2]]})");
  const CocoSet set = read_coco(text, "x.json", true);
  EXPECT_EQ(set.objects[0].fault, "");
  EXPECT_EQ(set.objects[0].annotation.box, (PixelBox{1, 2, 5, 7}));
  EXPECT_EQ(set.objects[0].annotation.area, 35);
  EXPECT_EQ(set.objects[1].fault, "");
  EXPECT_EQ(set.objects[1].annotation.box, (PixelBox{1, 0, 2, 10}));
  EXPECT_EQ(set.objects[2].fault, "its \"bbox\" is missing");
  EXPECT_EQ(set.objects[3].fault, "its \"bbox\" is missing");
  EXPECT_EQ(read_coco(text, "x.json", false).objects[0].fault, "its \"bbox\" is missing");
}

}  // namespace
}  // namespace dtrain::data
