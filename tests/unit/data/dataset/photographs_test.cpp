#include <fmt/format.h>

#include <gtest/gtest.h>
#include <zlib.h>
#include <cmath>

#include <dtrain/base/hash.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/prepare.hpp>
#include <dtrain/data/record.hpp>

#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"
#include "dataset/photographs.hpp"

namespace dtrain::data {
namespace {

std::string grey_jpeg(std::uint8_t grey) {
  return encode_image({1, 8, 8, std::vector<std::uint8_t>(64, grey)}, Encoding::jpeg);
}

std::string gzip(const std::string& content) { return zlib_packed(content, 16 + MAX_WBITS); }

std::string synsets() { return read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/synsets.mat"); }

std::string development_kit() {
  return gzip(tar_of({{"ILSVRC2012_devkit_t12/data/meta.mat", synsets()},
                      {"ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "2\n1\n2\n"}}));
}

std::string train_tar() {
  return tar_of({{"n02119789.tar", tar_of({{"n02119789_1.JPEG", grey_jpeg(1)}, {"n02119789_2.JPEG", grey_jpeg(2)}})},
                 {"n02100735.tar", tar_of({{"n02100735_1.JPEG", grey_jpeg(3)}})}});
}

std::string val_tar() {
  NamedFiles files;
  for (const int i : {3, 1, 2})
    files.push_back({fmt::format("ILSVRC2012_val_{:08}.JPEG", i), grey_jpeg(static_cast<std::uint8_t>(i))});
  return tar_of(files);
}

class Photos : public testing::Test {
 protected:
  Photos() {
    options.out = folder / "out";
    options.from = (folder / "in").string();
    make_folder(folder / "in");
  }
  void write(std::string_view name, const std::string& content) const {
    make_folder((folder / "in" / name).parent_path());
    write_file_atomic(folder / "in" / name, content);
  }
  static std::vector<float> labels(const Path& rec) {
    const RecordFile file(rec);
    std::vector<float> labels;
    for (std::size_t i = 0; i < file.size(); ++i) labels.push_back(file.read(i).labels.at(0));
    return labels;
  }

  TemporaryFolder folder;
  PrepareOptions options{.name = "imagenet", .out = {}, .from = {}, .progress = {}};
};

TEST(MatFile, GivesTheSynsetsThatScipyWrote) {
  const std::string meta = synsets();
  const auto found = read_synsets({"meta.mat", bytes_of(meta), nullptr});
  EXPECT_EQ(found,
            (std::map<int, std::string>{{1, "n02119789"}, {2, "n02100735"}, {3, "n02096294"}, {4, "n00001740"}}));
}

TEST(MatFile, NamesDamage) {
  const std::string meta = synsets();
  for (std::size_t size = 0; size < meta.size(); size += 7) {
    EXPECT_THROW(read_synsets({"meta.mat", bytes_of(meta).first(size), nullptr}), DataError) << size;
  }
}

std::string element(std::uint32_t type, const std::string& data) {
  const auto number = [](std::uint32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); };
  return number(type) + number(static_cast<std::uint32_t>(data.size())) + data +
         std::string((8 - data.size() % 8) % 8, '\0');
}

// An array of structures whose field names are said to be so long.
std::string mat_with_width(double width) {
  const std::string flags("\2\0\0\0\0\0\0\0", 8), sides("\1\0\0\0\1\0\0\0", 8);
  const std::string names(64, 'a');
  const std::string matrix = element(6, flags) + element(5, sides) + element(1, "s") +
                             element(9, std::string(reinterpret_cast<const char*>(&width), 8)) + element(1, names);
  return std::string(124, ' ') + std::string("\0\1IM", 4) + element(14, matrix);
}

TEST(MatFile, RefusesFieldNamesOfImpossibleLength) {
  for (const double width : {std::nan(""), -1.0, 0.0, 1.0, 2.5, 1e300}) {
    const std::string meta = mat_with_width(width);
    expect_error([&] { read_synsets({"meta.mat", bytes_of(meta), nullptr}); }, "a damaged length of its fields' names");
  }
}

TEST_F(Photos, OfImageNetComeFromItsThreeArchives) {
  write("ILSVRC2012_img_train.tar", train_tar());
  write("ILSVRC2012_img_val.tar", val_tar());
  write("ILSVRC2012_devkit_t12.tar.gz", development_kit());
  const PrepareResult result = prepare(options);
  EXPECT_EQ(result.train, folder / "out/imagenet_train.rec");
  EXPECT_EQ(result.train_records, 3u);
  // n02100735 is 0 and n02119789 is 1, in the order of their names; the truth says 2 1 2 by ILSVRC2012_ID.
  EXPECT_EQ(labels(result.val), (std::vector<float>{0, 1, 0}));
  const std::vector<float> train = labels(result.train);
  EXPECT_EQ(std::count(train.begin(), train.end(), 1.0f), 2);
  EXPECT_TRUE(prepare(options).already_there);
}

TEST_F(Photos, OfImageNetTakeTheirLabelsFromOtherListsToo) {
  options.force = true;
  write("ILSVRC2012_img_train.tar", train_tar());
  write("ILSVRC2012_img_val.tar", val_tar());
  expect_error([&] { prepare(options); }, "nothing says what the pictures of ILSVRC2012_img_val.tar show");
  write("LOC_val_solution.csv",
        "ImageId,PredictionString\nILSVRC2012_val_00000003,n02119789 1 2 3 4 n02119789 5 6 7 8\n"
        "ILSVRC2012_val_00000001,n02100735 1 2 3 4\nILSVRC2012_val_00000002,n02100735 1 2 3 4\n");
  EXPECT_EQ(labels(prepare(options).val), (std::vector<float>{0, 0, 1}));
  write("imagenet_2012_validation_synset_labels.txt", "n02119789\nn02119789\nn02100735\n");
  EXPECT_EQ(labels(prepare(options).val), (std::vector<float>{1, 1, 0}));
}

TEST_F(Photos, OfImageNetMayBeUnpacked) {
  write("train/n02/a.JPEG", grey_jpeg(1));
  write("train/n01/b.JPEG", grey_jpeg(2));
  write("val/n02/c.JPEG", grey_jpeg(3));
  write("val/n01/d.JPEG", grey_jpeg(4));
  EXPECT_EQ(labels(prepare(options).val), (std::vector<float>{0, 1}));
  write("val/n03/e.JPEG", grey_jpeg(5));
  expect_error([&] { prepare(options); }, "n03/e.JPEG: is of class n03, of which there are no training pictures");
}

TEST_F(Photos, OfImageNetAreNotFetchedFromItsHome) {
  options.from.clear();
  expect_error<UsageError>([&] { prepare(options); }, "name their folder with setting 'from'");
  options.from = folder.path().string();
  expect_error([&] { prepare(options); }, "no ImageNet here: ILSVRC2012_img_train.tar is missing");
}

std::string instances(int id, int category) {
  return fmt::format(
      R"({{"images": [{{"id": {0}, "file_name": "{0:012}.jpg", "width": 8, "height": 8, "coco_url": "x"}}],)"
      R"("annotations": [{{"image_id": {0}, "category_id": {1}, "bbox": [1, 1, 4, 4], "segmentation": [[1, 1, 5, 1, 5, 5]]}}],)"
      R"("categories": [{{"id": 1, "name": "person"}}, {{"id": 18, "name": "dog"}}]}})",
      id, category);
}

class CocoPhotos : public Photos {
 protected:
  CocoPhotos() { options.name = "coco"; }
  void write_archives() const {
    write("train2017.zip", zip_of({{"train2017/000000000007.jpg", grey_jpeg(1)}}));
    write("val2017.zip", zip_of({{"val2017/000000000009.jpg", grey_jpeg(2)}}));
    write("annotations_trainval2017.zip", zip_of({{"annotations/captions_val2017.json", "{}"},
                                                  {"annotations/instances_train2017.json", instances(7, 18)},
                                                  {"annotations/instances_val2017.json", instances(9, 1)}}));
  }
};

TEST_F(CocoPhotos, ComeFromItsArchives) {
  write_archives();
  const PrepareResult result = prepare(options);
  EXPECT_EQ(labels(result.train), std::vector<float>{1});
  EXPECT_EQ(labels(result.val), std::vector<float>{0});
  EXPECT_EQ(RecordFile(result.val).read(0).id, 9u);
  EXPECT_EQ(text_of(RecordFile(result.val).read(0).payload), grey_jpeg(2));
}

TEST_F(CocoPhotos, AreFetchedFromAnAddressAndChecked) {
  write_archives();
  const std::string annotations = read_file(folder / "in/annotations_trainval2017.zip");
  const std::string hash = sha256_hex(bytes_of(annotations));
  std::vector<CocoFile> files{{"annotations", {"annotations_trainval2017.zip", annotations.size(), hash.c_str()}}};
  options.from = "file://" + (folder / "in").string();
  EXPECT_EQ(fetch_coco(files, options), folder / "out");
  EXPECT_EQ(read_file(folder / "out/annotations_trainval2017.zip"), annotations);
  files.push_back({"zips", {"val2017.zip", 0, hash.c_str()}});
  expect_error([&] { fetch_coco(files, options); }, "val2017.zip");
  EXPECT_FALSE(std::filesystem::exists(folder / "out/val2017.zip"));
}

TEST_F(CocoPhotos, MayBecomeTheFoldersThatOtherProgramsRead) {
  write_archives();
  options.as_folders = true;
  const PrepareResult result = prepare(options);
  EXPECT_EQ(result.train, folder / "out/train2017");
  EXPECT_EQ(result.train_records, 1u);
  EXPECT_EQ(read_file(folder / "out/val2017/000000000009.jpg"), grey_jpeg(2));
  EXPECT_EQ(read_file(folder / "out/annotations/instances_train2017.json"), instances(7, 18));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/.dtrain-unpack.json"));
  std::filesystem::remove(folder / "out/val2017/000000000009.jpg");
  prepare(options);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/val2017/000000000009.jpg"));
  options.name = "imagenet";
  expect_error<UsageError>([&] { prepare(options); }, "imagenet: is not unpacked into folders");
}

TEST_F(CocoPhotos, ThatAreUnpackedAlreadyAreNotUnpacked) {
  write("train2017/000000000007.jpg", grey_jpeg(1));
  write("val2017/000000000009.jpg", grey_jpeg(2));
  write("annotations/instances_train2017.json", instances(7, 18));
  write("annotations/instances_val2017.json", instances(9, 18));
  options.as_folders = true;
  expect_error<UsageError>([&] { prepare(options); }, "in: is unpacked already | use it as it is");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  options.out = folder / "in";
  EXPECT_EQ(prepare(options).val_records, 1u);
}

TEST_F(CocoPhotos, MayBeUnpackedAndBeASubset) {
  write("train/000000000007.jpg", grey_jpeg(1));
  write("val/000000000009.jpg", grey_jpeg(2));
  write("annotations/instances_train.json", instances(7, 18));
  write("annotations/instances_val.json", instances(9, 18));
  options.coco_labels = CocoLabels::boxes;
  const Path val = prepare(options).val;
  const RecordFile file(val);
  const Record record = file.read(0);
  EXPECT_EQ(record.labels,
            (std::vector<float>{3, 5, static_cast<float>(record.objects.size()), 1, 0.125f, 0.125f, 0.625f, 0.625f}));
  EXPECT_TRUE(annotations_of(record, 8, 8).objects.at(0).has_mask());
}

}  // namespace
}  // namespace dtrain::data
