// Pictures out of what other programs keep them in.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/data/class_names.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "codec/cifar_records.hpp"
#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Pixels = std::vector<std::uint8_t>;

std::string jpeg(std::uint8_t grey) {
  return encode_image({1, 8, 8, std::vector<std::uint8_t>(64, grey)}, Encoding::jpeg);
}

class Import : public testing::Test {
 protected:
  Path write(std::string_view name, const std::string& content) const {
    write_file_atomic(folder / name, content);
    return folder / name;
  }
  PackResult import(const std::vector<Path>& sources, PackOptions options = {}) const {
    options.sources = sources;
    options.out = folder / "out";
    if (options.encoding == Encoding::jpeg) options.encoding = std::nullopt;
    options.force = true;
    return pack(options);
  }
  std::string payload(std::size_t position) const {
    const RecordFile file(folder / "out.rec");
    return std::string(text_of(file.read(position).payload));
  }
  Image image(std::size_t position) const {
    const RecordFile file(folder / "out.rec");
    Image image;
    decode_image(file.read(position).payload, kStoredChannels, image);
    return image;
  }
  std::vector<float> labels() const {
    const RecordFile file(folder / "out.rec");
    std::vector<float> labels;
    for (std::size_t i = 0; i < file.size(); ++i) labels.push_back(file.read(i).labels.at(0));
    return labels;
  }

  TemporaryFolder folder;
};

// `count` records with the labels 0, 1, ... and red 10 * label.
std::string cifar(std::size_t count, std::size_t label_bytes) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += std::string(label_bytes - 1, '\7') + static_cast<char>(i);
    bytes += std::string(kCifarPlane, static_cast<char>(10 * i)) + std::string(2 * kCifarPlane, '\1');
  }
  return bytes;
}

TEST_F(Import, TakesCifarWithOneAndWithTwoLabels) {
  for (const std::size_t label_bytes : {1u, 2u}) {
    import({write("batch_1.bin", cifar(3, label_bytes)), write("batch_2.bin", cifar(2, label_bytes))});
    EXPECT_EQ(labels(), (std::vector<float>{0, 1, 2, 0, 1}));
    const Image last = image(2);
    EXPECT_EQ(last.h, 32);
    EXPECT_EQ(Pixels(last.pixels.begin(), last.pixels.begin() + 4), (Pixels{20, 1, 1, 20}));
  }
}

TEST_F(Import, RefusesACifarFileThatWasCutShort) {
  const Path file = write("batch_1.bin", cifar(3, 1).substr(1));
  expect_error<UsageError>([&] { import({file}); }, "is no file of CIFAR");
  expect_error([&] { import({file}, {.format = PictureFormat::cifar10}); }, "has 9218 bytes, no multiple of 3073");
}

std::string idx(const std::vector<std::uint32_t>& shape, const std::string& values) {
  std::string bytes{'\0', '\0', '\x8', static_cast<char>(shape.size())};
  for (const std::uint32_t side : shape) {
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(side >> shift & 255);
  }
  return bytes + values;
}

TEST_F(Import, FindsTheLabelsBesideIdxImages) {
  const Path images = write("train-images-idx3-ubyte", idx({2, 2, 3}, "abcdefghijkl"));
  write("train-labels-idx1-ubyte", idx({2}, "\x2a\x07"));
  import({images});
  EXPECT_EQ(labels(), (std::vector<float>{42, 7}));
  EXPECT_EQ(image(1).c, 1);
  EXPECT_EQ(image(1).w, 3);
  EXPECT_EQ(image(1).pixels, (Pixels{'g', 'h', 'i', 'j', 'k', 'l'}));
}

TEST_F(Import, TakesIdxImagesInColourAndLabelsInAnyOrder) {
  const Path images = write("x", idx({1, 1, 2, 3}, "rgbRGB")), labels_file = write("y", idx({1}, "\3"));
  import({labels_file, images});
  EXPECT_EQ(labels(), std::vector<float>{3});
  EXPECT_EQ(image(0).pixels, (Pixels{'r', 'g', 'b', 'R', 'G', 'B'}));
  expect_error<UsageError>([&] { import({images}); }, "IDX files come in pairs");
}

TEST_F(Import, TakesWebDatasetsLabels) {
  const Path one =
      write("a.tar", tar_of({{"0001.jpg", jpeg(10)}, {"0001.cls", "3\n"}, {"0002.cls", "5"}, {"0002.jpg", jpeg(20)}}));
  const Path two = write("b.tar", tar_of({{"0001.png", encode_image({1, 1, 1, {9}}, Encoding::png)},
                                          {"0001.json", R"({"label": 4})"},
                                          {"0003.json", R"({"photographer": "x"})"},
                                          {"0003.jpg", jpeg(30)}}));
  const PackResult result = import({one, two});
  EXPECT_EQ(labels(), (std::vector<float>{3, 5, 4}));
  EXPECT_EQ(payload(1), jpeg(20));
  EXPECT_EQ(result.unlabelled, 1u);
}

TEST_F(Import, TakesOnePictureOfASampleAndNoMask) {
  const Path tar = write("a.tar", tar_of({{"0000.png", jpeg(10)},
                                          {"0000.seg.png", jpeg(11)},
                                          {"0000.cls", "3"},
                                          {"0001.depth.jpg", jpeg(21)},
                                          {"0001.jpg", jpeg(20)},
                                          {"0001.png", jpeg(22)},
                                          {"0001.cls", "5"},
                                          {"._0001.jpg", "of macOS"},
                                          {"._0001.cls", "of macOS"}}));
  const PackResult result = import({tar});
  EXPECT_EQ(labels(), (std::vector<float>{3, 5}));
  EXPECT_EQ(payload(0), jpeg(10));
  EXPECT_EQ(payload(1), jpeg(20));
  EXPECT_EQ(result.skipped.at("another part of a sample"),
            (std::vector<std::string>{"0000.seg.png", "0001.depth.jpg", "0001.png"}));
  EXPECT_EQ(result.skipped.at("hidden"), std::vector<std::string>{"._0001.jpg"});
  const Path parts = write(
      "b.tar",
      tar_of({{"0000.depth.png", jpeg(10)}, {"0000.seg.png", jpeg(11)}, {"0000.x.png", jpeg(12)}, {"0000.cls", "3"}}));
  expect_error([&] { import({parts}); }, "3 files were left out: another part of a sample");
}

TEST_F(Import, TakesTheOnlyPictureOfASampleAlsoWithTwoEndings) {
  const PackResult result = import({write("a.tar", tar_of({{"0000.image.jpg", jpeg(1)},
                                                           {"0000.cls", "3"},
                                                           {"0001.image.jpg", jpeg(2)},
                                                           {"0001.jpg", jpeg(3)},
                                                           {"0001.cls", "5"}}))});
  EXPECT_EQ(labels(), (std::vector<float>{3, 5}));
  EXPECT_EQ(payload(0), jpeg(1));
  EXPECT_EQ(payload(1), jpeg(3));
  EXPECT_EQ(result.skipped.at("another part of a sample"), std::vector<std::string>{"0001.image.jpg"});
}

TEST_F(Import, ReportsADocumentThatItCannotReadOnlyWhereThereAreLabels) {
  NamedFiles files{{"cat/1.json", "{cut off"}, {"cat/1.jpg", jpeg(1)}, {"dog/2.jpg", jpeg(2)}};
  EXPECT_EQ(import({write("a.tar", tar_of(files))}).classes, (std::vector<std::string>{"cat", "dog"}));
  files.emplace_back("dog/2.json", R"({"label": 4})");
  expect_error([&] { import({write("b.tar", tar_of(files))}); }, "b.tar(cat/1.json): not valid JSON");
  files.back() = {"dog/2.cls", "4"};
  expect_error([&] { import({write("c.tar", tar_of(files))}); }, "c.tar(cat/1.json): not valid JSON");
}

TEST_F(Import, LooksForLabelsBesideAllPicturesOfAnArchiveAndNowhereElse) {
  import({write("a.tar", tar_of({{"about.json", R"({"made": "by x"})"},
                                 {"1.json", R"({"photographer": "x"})"},
                                 {"1.jpg", jpeg(1)},
                                 {"2.json", R"({"label": 4})"},
                                 { "2.jpg",
                                   jpeg(2) }}))});
  EXPECT_EQ(labels(), std::vector<float>{4});
  const PackResult folders = import({write("b.tar", tar_of({{"cat/1.jpg", jpeg(1)},
                                                            {"dog/2.jpg", jpeg(2)},
                                                            {"thesis.cls", "a class of LaTeX"},
                                                            {"about.json", R"({"label": 4})"}}))});
  EXPECT_EQ(folders.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(labels(), (std::vector<float>{0, 1}));
}

TEST_F(Import, TakesAFileThatHoldsNoLabelForOneOnlyBesideMostPictures) {
  const std::string latex = R"(\ProvidesClass{thesis})";
  const PackResult folders = import({write(
      "a.tar",
      tar_of(
          {{"cat/thesis.cls", latex}, {"cat/thesis.jpg", jpeg(1)}, {"cat/2.jpg", jpeg(2)}, {"dog/1.jpg", jpeg(3)}}))});
  EXPECT_EQ(folders.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(labels(), (std::vector<float>{0, 0, 1}));
  const Path named =
      write("b.tar", tar_of({{"1.cls", "cat"}, {"1.jpg", jpeg(1)}, {"2.cls", "dog"}, {"2.jpg", jpeg(2)}}));
  expect_error([&] { import({named}); }, "b.tar(1.cls): is no number");
  const Path one = write(
      "c.tar", tar_of({{"1.cls", "cat"}, {"1.jpg", jpeg(1)}, {"2.cls", "4"}, {"2.jpg", jpeg(2)}, {"3.jpg", jpeg(3)}}));
  expect_error([&] { import({one}); }, "c.tar(1.cls): is no number");
}

TEST_F(Import, TakesBackslashesInAZipOfWindowsForFolders) {
  const PackResult result =
      import({write("a.zip", zip_of({{R"(cat\)", ""}, {R"(cat\1.jpg)", jpeg(1)}, {R"(dog\2.jpg)", jpeg(2)}}))});
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(labels(), (std::vector<float>{0, 1}));
}

TEST_F(Import, NumbersTheFoldersOfAnArchiveAsPackWould) {
  const NamedFiles files{{"./dog/2.jpg", jpeg(1)}, {"cat/9.jpg", jpeg(2)}, {"dog/1.JPEG", jpeg(3)}, {"cat/readme", ""}};
  import({write("a.tar", tar_of(files))});
  const std::string from_tar = read_file(folder / "out.rec");
  EXPECT_EQ(labels(), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(payload(1), jpeg(3));
  for (const auto& [name, content] : files) {
    make_folder((folder / "photos" / name).parent_path());
    write("photos/" + name, content);
  }
  PackOptions whole;
  whole.train_ratio = 1;
  import({folder / "photos"}, whole);
  EXPECT_EQ(read_file(folder / "out.rec"), from_tar);
}

TEST_F(Import, ReadsTarsInsideATarAsFolders) {
  const std::string inner = tar_of({{"n01_1.JPEG", jpeg(1)}, {"n01_2.JPEG", jpeg(2)}});
  const PackResult result = import({write("all.tar", tar_of({{"n02.tar", inner}, {"n01.tar", inner}}))});
  EXPECT_EQ(result.classes, (std::vector<std::string>{"n01", "n02"}));
  EXPECT_EQ(labels(), (std::vector<float>{0, 0, 1, 1}));
}

TEST_F(Import, ReadsStoredAndDeflatedFilesOfAZip) {
  const NamedFiles files{{"z/", ""}, {"z/a.jpg", jpeg(1)}, {"z/b.jpg", jpeg(2)}, {"y/c.jpg", jpeg(3)}};
  for (const bool long_form : {false, true}) {
    import({write("a.zip", zip_of(files, long_form))});
    EXPECT_EQ(labels(), (std::vector<float>{0, 1, 1}));
    EXPECT_EQ(payload(0), jpeg(3));
    EXPECT_EQ(payload(1), jpeg(1));
  }
}

TEST_F(Import, NamesWhatIsWrongWithAZip) {
  const std::string zip = zip_of({{"a.jpg", jpeg(1)}, {"b.jpg", jpeg(2)}});
  expect_error([&] { import({write("a.zip", zip.substr(0, zip.size() - 30))}); }, "no directory at the end");
  const std::size_t in_stored = zip.find("a.jpg") + 8 + jpeg(1).size() / 2, in_packed = zip.find("b.jpg") + 10;
  for (const auto& [name, at] : {std::pair{"a.jpg", in_stored}, {"b.jpg", in_packed}}) {
    std::string bad = zip;
    bad[at] ^= 1;
    std::filesystem::remove(folder / "out.pack.json");  // both archives may have one size and time
    const PackResult result = import({write("a.zip", bad)});
    ASSERT_EQ(result.problems.size(), 1u) << name;
    const std::string& what = result.problems[0].what;
    EXPECT_NE(what.find(fmt::format("a.zip({}): zip: damaged", name)), what.npos) << what;
  }
}

TEST_F(Import, MakesOtherRecordFilesOfRecordFiles) {
  import({write("a.tar", tar_of({{"x/1.jpg", jpeg(1)}, {"x/2.jpg", jpeg(2)}, {"y/1.jpg", jpeg(3)}, {
                                   "y/2.jpg",
                                   jpeg(4)
                                 }}))});
  PackOptions options{.sources = {folder / "out.rec"}, .out = folder / "again", .encoding = Encoding::png, .shards = 2};
  pack(options);
  const RecordSet set(find_records(folder / "again"));
  Record record;
  set.read(3, record);
  EXPECT_EQ(record.labels, std::vector<float>{1});
  EXPECT_EQ(detect_encoding(record.payload), Encoding::png);
  options = {.sources = {folder / "out"}, .out = folder / "same", .encoding = std::nullopt};
  pack(options);
  EXPECT_EQ(read_file(folder / "same.rec"), read_file(folder / "out.rec"));
}

TEST_F(Import, TakesAllMembersOfAGzipFile) {
  const std::string tar = tar_of({{"a/1.jpg", jpeg(1)}, {"b/1.jpg", jpeg(2)}, {"b/2.jpg", jpeg(3)}});
  const auto member = [](const std::string& content) { return zlib_packed(content, 16 + MAX_WBITS); };
  const std::string members = member(tar.substr(0, 700)) + member("") + member(tar.substr(700));
  for (const std::string& behind : {std::string(100, '\0'), std::string("rest"), std::string("\x1f")}) {
    import({write("a.tar.gz", members + behind)});
    EXPECT_EQ(labels(), (std::vector<float>{0, 1, 1}));
  }
  expect_error([&] { import({write("a.tar.gz", members + "\x1f\x8b\x08rest")}); }, "gzip: ");
  expect_error([&] { import({write("a.tar.gz", members.substr(0, members.size() - 9))}); }, "gzip: ends early");
}

TEST_F(Import, KeepsTheNamesOfTheClassesOfRecordFiles) {
  const auto pack_folders = [&](const char* out, const char* first, const char* second) {
    const std::string tar =
        tar_of({{fmt::format("{}/1.jpg", first), jpeg(1)}, {fmt::format("{}/1.jpg", second), jpeg(2)}});
    pack({.sources = {write(fmt::format("{}.tar", out), tar)}, .out = folder / out, .encoding = std::nullopt});
  };
  pack_folders("a", "cat", "dog");
  pack_folders("same", "cat", "dog");
  pack_folders("b", "bird", "dog");
  const PackResult result = import({folder / "a", folder / "same"});
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(class_names(std::vector<Path>{folder / "out.rec"}), result.classes);
  expect_error([&] { import({folder / "a", folder / "b"}); }, "b.rec: class 0 is \"bird\", but in ");
}

TEST_F(Import, RefusesSourcesThatDoNotGoTogether) {
  const Path tar = write("a.tar", tar_of({{"x/1.jpg", jpeg(1)}})), bin = write("b.bin", cifar(1, 1));
  expect_error<UsageError>([&] { import({tar, bin}); }, "are of different kinds");
  expect_error<UsageError>([&] { import({write("c.xyz", "what")}); }, "not known by its name or its first bytes");
}

}  // namespace
}  // namespace dtrain::data
