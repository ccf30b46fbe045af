// What a new set never destroys: the files that it is made from, those of users, and the set before it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <map>

#include <dtrain/data/class_names.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"
#include "pack/pack_sources.hpp"

namespace dtrain::data {
namespace {

class PackSafety : public testing::Test {
 protected:
  // Pictures of one pixel, all different.
  void write_class(const Path& of, int count) {
    make_folder(of);
    for (int i = 0; i < count; ++i) write_file_atomic(of / fmt::format("{}.png", i), pixel(next_++));
  }
  static std::string pixel(int value) {
    return encode_image({1, 1, 1, {static_cast<std::uint8_t>(value)}}, Encoding::png);
  }
  PackOptions options_from(const std::vector<Path>& sources) const {
    return {.sources = sources, .out = folder / "p", .encoding = std::nullopt, .train_ratio = 1, .threads = 2};
  }
  // Every file of the folder by its name.
  std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.is_regular_file()) files[entry.path().filename().string()] = read_file(entry.path());
    }
    return files;
  }

  TemporaryFolder folder;

 private:
  int next_ = 0;
};

TEST_F(PackSafety, NoSetOfSeveralFilesIsMadeOntoItself) {
  write_class(folder / "photos/cat", 5);
  write_class(folder / "photos/dog", 5);
  PackOptions options = options_from({folder / "photos"});
  options.shards = 4;
  pack(options);
  const auto before = content();
  options.sources = {folder / "p"};
  options.shuffle = true;
  for (const bool force : {false, true}) {
    options.force = force;
    expect_error<UsageError>([&] { pack(options); }, "p_0.rec: the pictures come from this file");
    EXPECT_EQ(content(), before);
  }
}

TEST_F(PackSafety, ASetOfOneFileIsMadeAnewInItsPlace) {
  write_class(folder / "photos/cat", 5);
  write_class(folder / "photos/dog", 5);
  PackOptions options = options_from({folder / "photos"});
  pack(options);
  options.sources = {folder / "p"};
  options.shuffle = options.force = true;
  const PackResult result = pack(options);
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(RecordFile(folder / "p.rec").size(), 10u);
}

TEST_F(PackSafety, KeepsTheEarlierSetWhereNoPictureOfTheNewOneCanBeRead) {
  write_class(folder / "photos/cat", 5);
  write_class(folder / "photos/dog", 5);
  PackOptions options = options_from({folder / "photos"});
  options.train_ratio = 0.6;
  options.shards = 2;
  pack(options);
  const auto before = content();
  make_folder(folder / "bad/x");
  write_file_atomic(folder / "bad/x/1.png", "no picture");
  options = options_from({folder / "bad"});
  options.force = true;
  expect_error([&] { pack(options); }, "none of its pictures can be packed");
  for (const auto& [name, bytes] : before) EXPECT_EQ(read_file(folder / name), bytes) << name;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "."))
    EXPECT_NE(entry.path().extension(), ".part");
  EXPECT_EQ(class_names(find_records((folder / "p_train").string())), (std::vector<std::string>{"cat", "dog"}));
}

TEST_F(PackSafety, RemovesTheEarlierSetOnceTheNewOneIsWholeAlsoWhereItWasStopped) {
  write_class(folder / "photos/cat", 5);
  write_class(folder / "photos/dog", 5);
  PackOptions options = options_from({folder / "photos"});
  options.shards = 3;
  pack(options);
  options.shards = 1;
  options.train_ratio = 0.6;
  options.force = true;
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 8) throw Error("stopped in the second file");
  };
  expect_error<Error>([&] { pack(options); }, "stopped in the second file");
  for (const char* name : {"p_0.rec", "p_1.rec", "p_2.rec", "p_train.rec"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  options.progress = nullptr;
  EXPECT_GE(pack(options).taken_up, 6u);
  for (const char* name : {"p_0.rec", "p_1.idx", "p_2.lst"})
    EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
  options.force = false;
  EXPECT_EQ(pack(options).taken_up, 10u);
}

TEST_F(PackSafety, RemovesTheFirstOfThreeSetsAlsoWhereTheSecondWasStopped) {
  write_class(folder / "photos/cat", 4);
  write_class(folder / "photos/dog", 4);
  write_class(folder / "bad/cat", 4);
  make_folder(folder / "bad/dog");
  for (int i = 0; i < 4; ++i) write_file_atomic(folder / fmt::format("bad/dog/{}.png", i), "no picture");
  PackOptions first = options_from({folder / "photos"});
  first.shards = 4;
  pack(first);
  PackOptions second = options_from({folder / "bad"});
  second.shards = 2;
  second.force = true;
  for (int run = 0; run < 2; ++run) {  // the second goes on with what the first has made
    expect_error([&] { pack(second); }, "p_1.rec: none of its pictures can be packed");
    EXPECT_TRUE(std::filesystem::exists(folder / "p_1.idx"));
  }
  PackOptions third = options_from({folder / "photos"});
  expect_error<UsageError>([&] { pack(third); }, "p_0.rec: is there already, of an earlier set of this prefix");
  third.force = true;
  pack(third);
  for (const char* name : {"p_0", "p_1", "p_2", "p_3"}) {
    for (const char* ending : {".rec", ".idx", ".lst"})
      EXPECT_FALSE(std::filesystem::exists(folder / (std::string(name) + ending))) << name << ending;
  }
  EXPECT_EQ(read_file(folder / "p.pack.json").find("p_"), std::string::npos) << "nothing of them is left to remember";
}

TEST_F(PackSafety, RemovesThePartsOfAStoppedPlanUnlessAProcessWritesThem) {
  write_class(folder / "photos/cat", 5);
  write_class(folder / "photos/dog", 5);
  PackOptions stopped = options_from({folder / "photos"}), other = stopped;
  stopped.force = other.force = true;
  stopped.shards = 4;
  stopped.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 6) throw Error("stopped in the third file");
  };
  const Path part = folder / "p_2.rec.part";
  for (const bool is_written : {false, true}) {
    expect_error<Error>([&] { pack(stopped); }, "stopped in the third file");
    ASSERT_TRUE(std::filesystem::exists(part));
    const FileDescriptor writer(::open(part.c_str(), O_RDONLY | O_CLOEXEC));
    if (is_written) {
      ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
    }
    pack(other);
    EXPECT_EQ(std::filesystem::exists(part), is_written);
    EXPECT_EQ(read_file(folder / "p.pack.json").find("p_"), std::string::npos);
  }
}

TEST_F(PackSafety, GoesOnWithAStoppedPlanAndItsParts) {
  write_class(folder / "photos/cat", 5);
  PackOptions options = options_from({folder / "photos"});
  options.shards = 2;
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 1) throw Error("stopped in the first file");
  };
  expect_error<Error>([&] { pack(options); }, "stopped in the first file");
  EXPECT_NE(read_file(folder / "p.pack.json").find("p_1.rec"), std::string::npos) << "it is yet to be made";
  options.progress = nullptr;
  EXPECT_EQ(pack(options).files.size(), 2u);
  EXPECT_EQ(read_file(folder / "p.pack.json").find("unfinished"), std::string::npos);
}

TEST_F(PackSafety, AStoppedSetIsReadByNothingButTheRunThatGoesOnWithIt) {
  write_class(folder / "photos/cat", 5);
  write_class(folder / "photos/dog", 5);
  PackOptions options = options_from({folder / "photos"});
  pack(options);
  options.sources = {folder / "p"};
  options.shuffle = options.force = true;
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 3) throw Error("stopped");
  };
  expect_error<Error>([&] { pack(options); }, "stopped");
  expect_error([&] { find_records((folder / "p").string()); }, "p.rec: is not finished, as ");
  PackOptions other = options_from({folder / "p"});
  other.out = folder / "other";
  expect_error([&] { pack(other); }, "p.rec: is not finished, as ");
  options.progress = nullptr;
  EXPECT_EQ(pack(options).files.at(0).records, 10u);
  EXPECT_EQ(find_records((folder / "p").string()).size(), 1u);
  EXPECT_EQ(pack(other).files.at(0).records, 10u);
}

TEST_F(PackSafety, WritesOverTheIndexAndTheListThatItMadeItself) {
  write_class(folder / "photos/cat", 2);
  PackOptions options = options_from({folder / "photos"});
  pack(options);
  std::filesystem::remove(folder / "p.rec");
  options.resize = 2;
  EXPECT_EQ(pack(options).files.at(0).records, 2u);
  options.resize = 3;
  expect_error<UsageError>([&] { pack(options); }, "p.rec: is there already");
}

TEST_F(PackSafety, NeverWritesOverTheListThatItPacks) {
  write_class(folder / "photos", 2);
  const std::string rows = "0\t0.123456789\tphotos/0.png\n1\t1\tphotos/none.png\n";
  write_file_atomic(folder / "p.lst", rows);
  PackOptions options = options_from({folder / "p.lst"});
  for (const bool force : {false, true}) {
    options.force = force;
    expect_error<UsageError>([&] { pack(options); }, "p.lst: the pictures come from this file");
    EXPECT_EQ(read_file(folder / "p.lst"), rows);
  }
  options.out = folder / "q";
  EXPECT_EQ(pack(options).files.at(0).records, 1u);
}

TEST_F(PackSafety, WritesOverAListOrAnIndexOfOthersOnlyByForce) {
  write_class(folder / "photos/cat", 2);
  PackOptions options = options_from({folder / "photos"});
  options.out = folder / "photos";
  for (const char* name : {"photos.lst", "photos.idx"}) {
    options.force = false;
    write_file_atomic(folder / name, "of the user");
    expect_error<UsageError>([&] { pack(options); }, std::string(name) + ": is there already, without the records");
    EXPECT_EQ(read_file(folder / name), "of the user");
    options.force = true;
    pack(options);
    EXPECT_NE(read_file(folder / name), "of the user");
    for (const char* made : {"photos.rec", "photos.idx", "photos.lst", "photos.pack.json"})
      std::filesystem::remove(folder / made);
  }
}

TEST_F(PackSafety, BeginsAPartAnewWhereIdsDoNotSayWhatItHolds) {
  write_class(folder / "photos", 10);
  write_file_atomic(folder / "photos/1.png", "no picture");
  std::string rows;
  for (int i = 0; i < 10; ++i) rows += fmt::format("7\t{}\tphotos/{}.png\n", i % 2, i);
  write_file_atomic(folder / "l.lst", rows);
  const PackOptions options = options_from({folder / "l.lst"});
  pack(options);
  const std::string records = read_file(folder / "p.rec"), list = read_file(folder / "p.lst");
  std::filesystem::remove(folder / "p.rec");
  write_file_atomic(folder / "p.rec.part", records.substr(0, records.size() * 2 / 3));
  EXPECT_EQ(pack(options).taken_up, 0u);
  EXPECT_EQ(read_file(folder / "p.rec"), records);
  EXPECT_EQ(read_file(folder / "p.lst"), list);
}

TEST_F(PackSafety, TakesAPictureOnceThatIsListedTwiceWhereTheSetIsSplit) {
  write_class(folder / "photos", 4);
  write_file_atomic(folder / "l.lst", "0\t0\t0.png\n1\t0\t1.png\n2\t1\t2.png\n3\t1\t3.png\n4\t0\t./0.png\n");
  PackOptions options = options_from({folder / "l.lst"});
  options.root = folder / "photos";
  const PackResult whole = pack(options);
  EXPECT_EQ(whole.files.at(0).records, 5u);
  EXPECT_FALSE(whole.skipped.contains(kListedTwice));
  options.train_ratio = 0.5;
  options.out = folder / "q";
  const PackResult lists = pack(options);
  EXPECT_EQ(lists.files.at(0).records + lists.files.at(1).records, 4u);
  EXPECT_EQ(lists.skipped.at(kListedTwice), std::vector<std::string>{"./0.png"});
  write_file_atomic(folder / "l.csv", "0.png,cat\n1.png,cat\n2.png,dog\n3.png,dog\n2.png,dog\n");
  options.sources = {folder / "photos"};
  options.root.clear();
  options.labels = folder / "l.csv";
  options.out = folder / "r";
  const PackResult table = pack(options);
  EXPECT_EQ(table.files.at(0).records + table.files.at(1).records, 4u);
  EXPECT_EQ(table.skipped.at(kListedTwice), std::vector<std::string>{"2.png"});
}

TEST(PackLists, RefusesAPictureWithTwoDifferentLabels) {
  expect_error([] { parse_list("0\t0\ta.jpg\n\n1\t1\ta.jpg\n", "x.lst", ""); },
               "x.lst: lines 1 and 3 give a.jpg different labels");
  expect_error([] { parse_labels("a.jpg,cat\n./a.jpg,dog\n", "l.csv", ""); },
               "l.csv: lines 1 and 2 give ./a.jpg different labels");
  expect_error(
      [] {
        parse_coco(R"({"images": [{"id": 3, "file_name": "a.jpg"}, {"id": 4, "file_name": "./a.jpg"}],
                       "annotations": [], "categories": [{"id": 1, "name": "cat"}]})",
                   "c.json", "", CocoLabels::largest);
      },
      "c.json: the images 3 and 4 have the \"file_name\" a.jpg");
}

TEST_F(PackSafety, TakesAListAndACocoFileByTheFormatThatIsNamed) {
  write_class(folder / "photos", 2);
  write_file_atomic(folder / "photos/names.txt", "0\t0\t0.png\n1\t1\t1.png\n");
  PackOptions options = options_from({folder / "photos/names.txt"});
  expect_error<UsageError>([&] { pack(options); }, "not known by its name");
  options.format = PictureFormat::list;
  EXPECT_EQ(pack(options).files.at(0).records, 2u);
  write_file_atomic(folder / "photos/boxes.txt",
                    R"({"images": [{"id": 3, "file_name": "0.png", "width": 1, "height": 1}],
                        "annotations": [{"id": 1, "image_id": 3, "category_id": 1, "bbox": [0, 0, 1, 1]}],
                        "categories": [{"id": 1, "name": "cat"}]})");
  options.sources = {folder / "photos/boxes.txt"};
  options.format = PictureFormat::coco;
  options.out = folder / "q";
  EXPECT_EQ(pack(options).classes, std::vector<std::string>{"cat"});
}

TEST_F(PackSafety, TakesNoFolderForAFileByTheFormatThatIsNamed) {
  write_class(folder / "photos", 2);
  PackOptions options = options_from({folder / "photos"});
  for (const char* name : {"list", "coco", "archive", "cifar10", "idx"}) {
    options.format = parse_picture_format(name).value();
    expect_error<UsageError>([&] { pack(options); },
                             fmt::format("photos: is a folder, and setting 'format' {} names a file", name));
  }
  options.format = PictureFormat::folder;
  EXPECT_EQ(pack(options).files.at(0).records, 2u);
}

TEST_F(PackSafety, FindsPicturesOfAListInAnArchiveByTheirWholeNamesFirst) {
  write_file_atomic(folder / "a.zip", zip_of({{"sub/1.png", pixel(1)}, {"1.png", pixel(2)}, {"sub/3.png", pixel(3)}}));
  write_file_atomic(folder / "l.lst", "0\t0\t1.png\n1\t1\t3.png\n");
  PackOptions options = options_from({folder / "l.lst"});
  options.root = folder / "a.zip";
  pack(options);
  const RecordFile file(folder / "p.rec");
  EXPECT_EQ(text_of(file.read(0).payload), pixel(2));
  EXPECT_EQ(text_of(file.read(1).payload), pixel(3));
}

TEST_F(PackSafety, RefusesANameThatSeveralPicturesOfAnArchiveHave) {
  write_file_atomic(folder / "a.zip", zip_of({{"train/1.png", pixel(1)}, {"valid/1.png", pixel(2)}}));
  write_file_atomic(folder / "l.lst", "0\t0\t1.png\n");
  PackOptions options = options_from({folder / "l.lst"});
  options.root = folder / "a.zip";
  expect_error([&] { pack(options); }, "a.zip: holds train/1.png and valid/1.png, and 1.png may be either");
  write_file_atomic(folder / "l.lst", "0\t0\tvalid/1.png\n");
  pack(options);
  EXPECT_EQ(text_of(RecordFile(folder / "p.rec").read(0).payload), pixel(2));
  write_file_atomic(folder / "l.lst", "0\t0\t1.png\n");
  options.force = true;
  const std::pair<std::string, std::string> member{"photos/1.png", pixel(3)};
  for (const char* other : {"photos/1.png", ".thumbs/1.png", "__MACOSX/photos/1.png"}) {
    for (const NamedFiles& files : {NamedFiles{member, {other, pixel(3)}}, NamedFiles{{other, pixel(3)}, member}}) {
      write_file_atomic(folder / "a.zip", zip_of(files));
      EXPECT_EQ(pack(options).files.at(0).records, 1u) << other;
    }
  }
  write_file_atomic(folder / "a.zip", zip_of({{"home/.cache/set/1.png", pixel(3)}}));  // packed with its whole path
  EXPECT_EQ(pack(options).files.at(0).records, 1u);
  write_file_atomic(folder / "l.lst", "0\t0\t.thumbs/1.png\n");
  for (const char* name : {".thumbs/1.png", "photos/.thumbs/1.png"}) {
    write_file_atomic(folder / "a.zip", zip_of({{name, pixel(3)}}));
    EXPECT_EQ(pack(options).files.at(0).records, 1u) << name;
  }
}

TEST_F(PackSafety, PacksTheOthersWhereAnArchiveLacksAPicture) {
  write_file_atomic(folder / "a.zip", zip_of({{"1.png", pixel(1)}, {"3.png", pixel(3)}}));
  write_file_atomic(folder / "l.lst", "0\t0\t1.png\n1\t0\t2.png\n2\t1\t3.png\n");
  PackOptions options = options_from({folder / "l.lst"});
  options.root = folder / "a.zip";
  const PackResult result = pack(options);
  EXPECT_EQ(result.files.at(0).records, 2u);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].file, "2.png");
  EXPECT_NE(result.problems[0].what.find("a.zip: holds no 2.png"), std::string::npos) << result.problems[0].what;
  write_file_atomic(folder / "l.lst", "0\t0\t7.png\n1\t0\t8.png\n");
  expect_error([&] { pack(options); }, "a.zip: holds no 7.png");
}

}  // namespace
}  // namespace dtrain::data
