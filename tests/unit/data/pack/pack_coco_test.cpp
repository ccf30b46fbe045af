#include <fmt/format.h>

#include <gtest/gtest.h>

#include <dtrain/data/class_names.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"
#include "pack/pack_sources.hpp"

namespace dtrain::data {
namespace {

std::string jpeg_of(int h, int w) {
  return encode_image({3, h, w, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * h * w), 90)}, Encoding::jpeg);
}

const char* const kCoco = R"({"images": [
  {"id": 3, "file_name": "a.jpg", "width": 100, "height": 50}, {"id": 4, "file_name": "b.jpg", "width": 9, "height": 9}],
 "annotations": [{"id": 1, "image_id": 3, "category_id": 18, "bbox": [10, 5, 20, 10]},
                 {"id": 2, "image_id": 3, "category_id": 5, "bbox": [0, 0, 50, 25], "segmentation": [[0, 0, 9, 0, 9, 9]]},
                 {"id": 3, "image_id": 3, "category_id": 18, "bbox": [0, 0, 100, 50], "iscrowd": 1},
                 {"id": 4, "image_id": 3, "category_id": 5, "bbox": [7, 7, 0, 3]},
                 {"id": 5, "image_id": 8, "category_id": 5, "bbox": [7, 7, 1, 3]},
                 {"id": 6, "image_id": 4, "category_id": 6, "bbox": [7, 7, 1, 3]}],
 "categories": [{"id": 18, "name": "dog"}, {"id": 5, "name": "cat"}]})";

TEST(PackCoco, LabelsACocoPictureByItsLargestBox) {
  const PackList list = parse_coco(kCoco, "coco.json", "", CocoLabels::largest);
  EXPECT_EQ(list.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0].id, 3u);
  EXPECT_EQ(list.items[0].labels, std::vector<float>{0});
  EXPECT_EQ(list.unlabelled, 1u);
}

TEST(PackCoco, GivesACocoPictureAllItsObjectsForDetection) {
  const PackList list = parse_coco(kCoco, "coco.json", "", CocoLabels::boxes);
  ASSERT_EQ(list.items.size(), 2u);
  const PackItem& item = list.items[0];
  EXPECT_EQ(item.labels, (std::vector<float>{3, 5, static_cast<float>(item.objects.size()), 1, 0.1f, 0.1f, 0.3f, 0.3f,
                                             0, 0, 0, 0.5, 0.5}));
  const Annotations annotations = read_objects_block(bytes_of(item.objects));
  EXPECT_EQ(annotations.width, 100);
  ASSERT_EQ(annotations.objects.size(), 3u);
  EXPECT_EQ(annotations.objects[1].polygons[0], (std::vector<double>{0, 0, 9, 0, 9, 9}));
  EXPECT_TRUE(annotations.objects[2].crowd);
  EXPECT_EQ(list.items[1].labels[3], -1);
}

TEST(PackCoco, CountsAndNamesWhatOfACocoFileIsOfNoUse) {
  const PackList list = parse_coco(kCoco, "coco.json", "", CocoLabels::boxes);
  EXPECT_EQ(list.without_objects, std::vector<std::string>{"b.jpg"});
  EXPECT_EQ(list.objects_left_out, (std::map<std::string, std::vector<std::string>>{
                                       {"its box has no area", {"annotation 4 of a.jpg"}},
                                       {"its picture is not among the images", {"annotation 5 of image 8"}},
                                       {"its category is not among the categories", {"annotation 6 of b.jpg"}}}));
}

TEST(PackCoco, KeepsObjectsWhenRecordsArePackedAgain) {
  TemporaryFolder folder;
  make_folder(folder / "photos");
  write_file_atomic(folder / "photos/a.jpg", jpeg_of(50, 100));
  write_file_atomic(folder / "photos/b.jpg", jpeg_of(9, 9));
  write_file_atomic(folder / "photos/c.jpg", jpeg_of(9, 9));
  write_file_atomic(folder / "coco.json", kCoco);
  PackOptions options{.sources = {folder / "coco.json"},
                      .root = folder / "photos",
                      .coco_labels = CocoLabels::boxes,
                      .out = folder / "p"};
  const PackResult result = pack(options);
  EXPECT_EQ(result.class_objects, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(result.skipped.at("no image of the JSON file"), std::vector<std::string>{"c.jpg"});
  EXPECT_EQ(verify_records(folder / "p.rec").problem_count, 0u);
  EXPECT_EQ(verify_records(folder / "p.rec").objects, 3u);
  options = {.sources = {folder / "p.rec"}, .format = PictureFormat::records, .out = folder / "q", .resize = 30};
  pack(options);
  const RecordFile packed(folder / "p.rec"), again(folder / "q.rec");
  const Record before = packed.read(0);
  EXPECT_EQ(again.read(0).labels, before.labels);
  EXPECT_EQ(text_of(again.read(0).objects), text_of(before.objects));
  Image image;
  decode_image(again.read(0).payload, kStoredChannels, image);
  EXPECT_EQ(image.h, 30);
  EXPECT_EQ(verify_records(folder / "q.rec").problem_count, 0u);
}

// Pictures and a COCO file in a folder, which are packed with their boxes.
class PackCocoFiles : public testing::Test {
 protected:
  PackCocoFiles() { make_folder(folder / "photos"); }
  void write_picture(const std::string& name, const std::string& content) const {
    write_file_atomic(folder / "photos" / name, content);
  }
  PackResult pack_coco(const std::string& coco) const {
    write_file_atomic(folder / "coco.json", coco);
    return pack(options);
  }
  // One image of this size with a box, in the file a.jpg, and the picture b.jpg of 9x9 pixels.
  static std::string coco_of(int width, int height, const std::string& category = "cat") {
    return fmt::format(R"({{"images": [{{"id": 3, "file_name": "a.jpg", "width": {}, "height": {}}},
      {{"id": 4, "file_name": "b.jpg", "width": 9, "height": 9}}],
      "annotations": [{{"id": 1, "image_id": 3, "category_id": 5, "bbox": [1, 1, 5, 5]}}],
      "categories": [{{"id": 5, "name": "{}"}}]}})",
                       width, height, category);
  }
  std::vector<std::string> names() const { return class_names(std::vector<Path>{folder / "p.rec"}); }

  TemporaryFolder folder;
  PackOptions options{.sources = {folder / "coco.json"},
                      .root = folder / "photos",
                      .coco_labels = CocoLabels::boxes,
                      .out = folder / "p"};
};

TEST_F(PackCocoFiles, GetTheNewNamesOfTheirCategories) {
  write_picture("a.jpg", jpeg_of(50, 100));
  write_picture("b.jpg", jpeg_of(9, 9));
  pack_coco(coco_of(100, 50, "cat"));
  EXPECT_EQ(names(), std::vector<std::string>{"cat"});
  EXPECT_EQ(pack_coco(coco_of(100, 50, "cat")).taken_up, 2u);
  expect_error<UsageError>([&] { pack_coco(coco_of(100, 50, "dog")); }, "is there already, made from other pictures");
  options.force = true;
  pack_coco(coco_of(100, 50, "dog"));
  EXPECT_EQ(names(), std::vector<std::string>{"dog"});
}

TEST_F(PackCocoFiles, MustBeOfTheSizeThatTheirAnnotationsAreOf) {
  write_picture("a.jpg", jpeg_of(100, 50));
  write_picture("b.jpg", jpeg_of(9, 9));
  const PackResult result = pack_coco(coco_of(100, 50));
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].file, "a.jpg");
  EXPECT_EQ(result.problems[0].what, "its picture is of 50x100 pixels, and its objects are of a picture of 100x50");
  EXPECT_EQ(result.files[0].records, 1u);
}

TEST_F(PackCocoFiles, MayBeOfAnotherScale) {
  write_picture("a.jpg", jpeg_of(25, 50));
  write_picture("b.jpg", jpeg_of(9, 9));
  for (const int resize : {0, 8, 30}) {
    options.resize = resize;
    options.force = true;
    EXPECT_TRUE(pack_coco(coco_of(100, 50)).problems.empty()) << resize;
    EXPECT_EQ(verify_records(folder / "p.rec").problem_count, 0u) << resize;
  }
}

// The JPEG with an EXIF block that says how the camera was held.
std::string held(const std::string& jpeg, char orientation) {
  std::string block("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x01\0\0\0\0\0\0\0", 32);
  block[24] = orientation;
  const std::string length{'\0', static_cast<char>(block.size() + 2)};
  return jpeg.substr(0, 2) + "\xff\xe1" + length + block + jpeg.substr(2);
}

TEST_F(PackCocoFiles, OfATurnedPhotographAreOfThePictureAsItIsShown) {
  write_picture("b.jpg", jpeg_of(9, 9));
  for (const int resize : {0, 30}) {
    options.resize = resize;
    options.force = true;
    for (const char orientation : {5, 6, 7, 8}) {
      write_picture("a.jpg", held(jpeg_of(50, 100), orientation));
      const PackResult result = pack_coco(coco_of(100, 50));
      ASSERT_EQ(result.problems.size(), 1u);
      EXPECT_EQ(result.problems[0].file, "a.jpg");
      EXPECT_NE(result.problems[0].what.find("of 100x50 pixels before it is turned"), std::string::npos)
          << result.problems[0].what;
      EXPECT_TRUE(pack_coco(coco_of(50, 100)).problems.empty());
    }
    write_picture("a.jpg", held(jpeg_of(50, 100), 3));
    EXPECT_TRUE(pack_coco(coco_of(100, 50)).problems.empty());
  }
  write_picture("a.jpg", held(jpeg_of(100, 101), 6));  // nearly a square, whose shape says little
  EXPECT_EQ(pack_coco(coco_of(101, 100)).problems.size(), 1u);
  EXPECT_TRUE(pack_coco(coco_of(100, 101)).problems.empty());
}

std::string with_annotations(const std::string& annotations) {
  return R"({"images": [{"id": 3, "file_name": "a.jpg", "width": 100, "height": 50}], "annotations": [)" + annotations +
         R"(], "categories": [{"id": 5, "name": "cat"}]})";
}

TEST(PackCoco, LeavesOutAnnotationsThatCannotBeRead) {
  const std::string coco = with_annotations(R"({"id": 1, "image_id": 3, "category_id": 5},
    {"id": 2, "image_id": 3, "category_id": 5, "bbox": [0, 0, 5, 5]}, {"id": 7, "bbox": [0, 0, 5, 5]},
    {"id": "x", "image_id": 3, "category_id": 5, "bbox": [0, 0, 5, 5]})");
  for (const CocoLabels kind : {CocoLabels::largest, CocoLabels::boxes}) {
    const PackList list = parse_coco(coco, "coco.json", "", kind);
    EXPECT_EQ(list.objects_left_out, (std::map<std::string, std::vector<std::string>>{
                                         {"its \"bbox\" is missing", {"annotation 1 of a.jpg"}},
                                         {"its \"image_id\" is missing", {"annotation 7"}},
                                         {"its \"id\" is no whole number", {"annotation number 4 of a.jpg"}}}));
    EXPECT_EQ(list.items.size(), 1u);
  }
}

TEST(PackCoco, TakesForTheLargestBoxWhatThePictureShowsOfIt) {
  const std::string images = R"({"images": [{"id": 3, "file_name": "a.jpg", "width": 100, "height": 50}],
      "categories": [{"id": 5, "name": "cat"}, {"id": 6, "name": "dog"}], "annotations": [)",
                    outside = R"({"id": 1, "image_id": 3, "category_id": 5, "bbox": [200, 0, 90, 90]})",
                    crossing = R"({"id": 2, "image_id": 3, "category_id": 5, "bbox": [90, 0, 400, 20]})",
                    mask = R"({"id": 3, "image_id": 3, "category_id": 6, "segmentation": [[0, 0, 30, 0, 30, 20]]})";
  const PackList list =
      parse_coco(images + outside + "," + crossing + "," + mask + "]}", "coco.json", "", CocoLabels::largest);
  EXPECT_EQ(list.items.at(0).labels, std::vector<float>{1});
  EXPECT_EQ(list.objects_left_out, (std::map<std::string, std::vector<std::string>>{
                                       {"its box lies outside of the picture", {"annotation 1 of a.jpg"}}}));
  EXPECT_TRUE(list.without_mask.empty()) << "a classifier needs none";
}

TEST(PackCoco, LooksForTheLargestBoxAtNoMaskBesideOne) {
  const std::string cat = R"({"id": 1, "image_id": 3, "category_id": 5, "bbox": [0, 0, 60, 40], "segmentation": )",
                    dog = R"({"id": 2, "image_id": 3, "category_id": 6, "bbox": [0, 0, 9, 9]})";
  for (const char* const mask : {R"({"size": [9, 9], "counts": [81]})", "[[90, 45, 99, 45, 99, 49]]", "7"}) {
    const PackList list = parse_coco(
        R"({"images": [{"id": 3, "file_name": "a.jpg", "width": 100, "height": 50}],
            "categories": [{"id": 5, "name": "cat"}, {"id": 6, "name": "dog"}], "annotations": [)" +
            cat + mask + "}," + dog + "]}",
        "coco.json", "", CocoLabels::largest);
    EXPECT_EQ(list.items.at(0).labels, std::vector<float>{0}) << mask;
    EXPECT_TRUE(list.objects_left_out.empty()) << mask;
  }
}

TEST(PackCoco, KeepsTheBoxOfAMaskWithABadPolygon) {
  const std::string box = R"("image_id": 3, "category_id": 5, "bbox": [0, 0, 20, 20], "segmentation": )",
                    mixed = R"({"id": 1, )" + box + "[[1, 1, 2, 2], [0, 0, 9, 0, 9, 9]]}",
                    line = R"({"id": 2, )" + box + "[[1, 1, 2, 2]]}";
  const auto objects = [](const PackList& list) {
    return read_objects_block(bytes_of(list.items.at(0).objects)).objects;
  };
  const PackList list = parse_coco(with_annotations(mixed + "," + line), "coco.json", "", CocoLabels::boxes);
  EXPECT_TRUE(list.objects_left_out.empty());
  EXPECT_EQ(list.polygons_left_out, (std::vector<std::string>{"annotation 1 of a.jpg", "annotation 2 of a.jpg"}));
  ASSERT_EQ(objects(list).size(), 2u);
  EXPECT_EQ(objects(list)[0].polygons, (std::vector<std::vector<double>>{{0, 0, 9, 0, 9, 9}}));
  // A network of masks needs one of each object.
  EXPECT_EQ(objects(list)[1].runs, std::vector<std::uint32_t>{5000});
  const PackList boxes = parse_coco(with_annotations(line), "coco.json", "", CocoLabels::boxes);
  ASSERT_EQ(objects(boxes).size(), 1u);
  EXPECT_FALSE(objects(boxes)[0].has_mask());
}

TEST(PackCoco, GivesAnObjectWithoutAMaskAnEmptyOneWhereOthersHaveMasks) {
  const std::string box = R"("image_id": 3, "category_id": 5, "bbox": [0, 0, 20, 20])",
                    masked = R"({"id": 1, )" + box + R"(, "segmentation": [[0, 0, 9, 0, 9, 9]]})",
                    missing = R"({"id": 2, )" + box + "}", null = R"({"id": 3, )" + box + R"(, "segmentation": null})",
                    empty = R"({"id": 4, )" + box + R"(, "segmentation": []})";
  const PackList list = parse_coco(with_annotations(masked + "," + missing + "," + null + "," + empty), "coco.json", "",
                                   CocoLabels::boxes);
  EXPECT_EQ(list.without_mask,
            (std::vector<std::string>{"annotation 2 of a.jpg", "annotation 3 of a.jpg", "annotation 4 of a.jpg"}));
  EXPECT_TRUE(list.polygons_left_out.empty());
  const Annotations found = read_objects_block(bytes_of(list.items.at(0).objects));
  ASSERT_EQ(found.objects.size(), 4u);
  for (const Annotation& object : found.objects) EXPECT_TRUE(object.has_mask()) << object.id;
  EXPECT_EQ(found.objects[1].runs, std::vector<std::uint32_t>{5000});
  EXPECT_TRUE(parse_coco(with_annotations(missing), "coco.json", "", CocoLabels::boxes).without_mask.empty());
}

// The images of coco_of(100, 50), each with `before` in front of its file_name.
class PackCocoNames : public PackCocoFiles {
 protected:
  PackCocoNames() {
    options.force = true;
    write_pair("");
  }
  void write_pair(const std::string& below) const {
    make_folder(folder / "photos" / below);
    write_picture(below + "a.jpg", jpeg_of(50, 100));
    write_picture(below + "b.jpg", jpeg_of(9, 9));
  }
  PackResult pack_named(const std::string& before) const {
    const std::string key = R"("file_name": ")";
    std::string coco = coco_of(100, 50);
    for (std::size_t at = coco.find(key); at != coco.npos; at = coco.find(key, at + 1))
      coco.insert(at + key.size(), before);
    return pack_coco(coco);
  }
};

TEST_F(PackCocoNames, MayBeginWithTheFolderItself) {
  const PackResult result = pack_named("./");
  EXPECT_EQ(result.files.at(0).records, 2u);
  EXPECT_TRUE(result.skipped.empty());
  EXPECT_EQ(result.found_elsewhere, "");
}

TEST_F(PackCocoNames, MayBeRelativeToTheFolderAbove) {
  const PackResult result = pack_named("photos/");
  EXPECT_EQ(result.files.at(0).records, 2u);
  EXPECT_TRUE(result.skipped.empty());
  EXPECT_NE(result.found_elsewhere.find("photos by its \"file_name\"; all are in "), std::string::npos)
      << result.found_elsewhere;
}

TEST_F(PackCocoNames, MayHaveFoldersThatAreNotHere) {
  for (const char* const before : {"train/", R"(C:\\train\\)"}) {
    const PackResult result = pack_named(before);
    EXPECT_EQ(result.files.at(0).records, 2u);
    EXPECT_TRUE(result.skipped.empty());
    EXPECT_NE(result.found_elsewhere.find("all are there without the folders in their names"), std::string::npos)
        << result.found_elsewhere;
  }
}

TEST_F(PackCocoNames, MayHaveBackslashes) {
  write_pair("sub/");
  const PackResult result = pack_named(R"(sub\\)");
  EXPECT_EQ(result.files.at(0).records, 2u);
  EXPECT_EQ(result.found_elsewhere, "");
  write_picture(R"(sub\a.jpg)", "no picture");  // a file of that very name comes first
  EXPECT_EQ(pack_named(R"(sub\\)").problems.at(0).file, R"(sub\a.jpg)");
}

TEST_F(PackCocoNames, ThatAreNotThereGetAHint) {
  std::filesystem::remove(folder / "photos/b.jpg");
  expect_error([&] { pack_named("train/"); },
               ": name the folder to which these names are relative; 1 of 2 are there without the folders");
}

TEST_F(PackCocoFiles, GiveTheSizesThatTheJsonFileLacks) {
  write_picture("a.jpg", jpeg_of(50, 100));
  const PackResult result = pack_coco(R"({"images": [{"id": 3, "file_name": "a.jpg"}, {"id": 4, "file_name": "b.jpg"}],
    "annotations": [{"id": 1, "image_id": 3, "category_id": 5, "bbox": [1, 1, 5, 5]},
                    {"id": 2, "image_id": 4, "category_id": 5, "bbox": [1, 1, 5, 5]}],
    "categories": [{"id": 5, "name": "cat"}]})");
  EXPECT_EQ(result.files.at(0).records, 1u);
  const RecordFile packed(folder / "p.rec");
  const Record record = packed.read(0);
  const Annotations annotations = read_objects_block(record.objects);
  EXPECT_EQ(annotations.height, 50);
  EXPECT_EQ(annotations.width, 100);
  ASSERT_EQ(result.skipped.size(), 1u);
  EXPECT_NE(result.skipped.begin()->first.find("has no \"height\" and \"width\""), std::string::npos);
  EXPECT_EQ(result.skipped.begin()->second, std::vector<std::string>{"b.jpg"});
  EXPECT_EQ(result.objects_left_out.at("its picture has no size"), std::vector<std::string>{"annotation 2 of b.jpg"});
}

}  // namespace
}  // namespace dtrain::data
