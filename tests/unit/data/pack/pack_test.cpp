#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"
#include "pack/pack_sources.hpp"

namespace dtrain::data {
namespace {

// A slope that is another one for every `number`.
Image slope(int h, int w, int number) {
  Image image{3, h, w, {}};
  for (int i = 0; i < h * w; ++i) {
    for (int c = 0; c < 3; ++c) {
      image.pixels.push_back(static_cast<std::uint8_t>((i % w * 3 + i / w * (c + 1) + number * 29) % 256));
    }
  }
  return image;
}

// dog/0.jpg ... and cat/: `count` pictures, every other one of each.
void write_pictures(const TemporaryFolder& folder, int count, int h = 20, int w = 30) {
  for (const char* name : {"photos/cat", "photos/dog"}) make_folder(folder / name);
  for (int i = 0; i < count; ++i) {
    write_file_atomic(folder / fmt::format("photos/{}/{:03}.jpg", i % 2 == 0 ? "dog" : "cat", i),
                      encode_image(slope(h, w, i), Encoding::jpeg));
  }
}

PackOptions options_of(const TemporaryFolder& folder, std::string_view out = "p", std::optional<double> ratio = 1) {
  return {.sources = {folder / "photos"}, .out = folder / out, .train_ratio = ratio, .threads = 2};
}

Image image_of(const RecordFile& file, std::size_t position) {
  Image image;
  decode_image(file.read(position).payload, kStoredChannels, image);
  return image;
}

TEST(Pack, NumbersClassesByNameAndKeepsPicturesThatNeedNoChange) {
  TemporaryFolder folder;
  write_pictures(folder, 4);
  const PackResult result = pack(options_of(folder));
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  const RecordFile file(folder / "p.rec");
  ASSERT_EQ(file.size(), 4u);
  EXPECT_EQ(file.read(1).labels, std::vector<float>{0});
  EXPECT_EQ(file.read(2).labels, std::vector<float>{1});
  EXPECT_EQ(text_of(file.read(2).payload), read_file(folder / "photos/dog/000.jpg"));
  EXPECT_EQ(read_file(folder / "p.lst"),
            "0\t0.000000\tcat/001.jpg\n1\t0.000000\tcat/003.jpg\n2\t1.000000\tdog/000.jpg\n3\t1.000000\tdog/002.jpg\n");
}

TEST(Pack, ResizesTheShorterEdge) {
  TemporaryFolder folder;
  write_pictures(folder, 2, 40, 60);
  PackOptions options = options_of(folder);
  options.resize = 20;
  options.encoding = Encoding::png;
  pack(options);
  const Image image = image_of(RecordFile(folder / "p.rec"), 0);
  EXPECT_EQ(image.h, 20);
  EXPECT_EQ(image.w, 30);
}

TEST(Pack, LeavesAPictureOutThatIsTooThinToResize) {
  TemporaryFolder folder;
  write_pictures(folder, 2);
  write_file_atomic(folder / "photos/cat/thin.png", encode_image(slope(1, 60'000, 0), Encoding::png));
  PackOptions options = options_of(folder);
  options.resize = 256;
  const PackResult result = pack(options);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].file, "cat/thin.png");
  EXPECT_NE(result.problems[0].what.find("resized to 15360000 x 256"), std::string::npos) << result.problems[0].what;
}

TEST(Pack, WritesTheSameFilesWhateverTheNumberOfThreads) {
  TemporaryFolder folder;
  write_pictures(folder, 40);
  for (const int threads : {1, 5}) {
    PackOptions options = options_of(folder, fmt::format("t{}", threads));
    options.threads = threads;
    options.shuffle = true;
    options.quality = 80;
    pack(options);
  }
  for (const char* ending : {".rec", ".idx", ".lst"}) {
    EXPECT_EQ(read_file(folder / ("t1" + std::string(ending))), read_file(folder / ("t5" + std::string(ending))));
  }
}

TEST(Pack, SplitsIntoTrainAndValAndShardsWithoutLosingAPicture) {
  TemporaryFolder folder;
  write_pictures(folder, 20);
  PackOptions options = options_of(folder);
  options.shards = 2;
  options.train_ratio = 0.7;
  const PackResult result = pack(options);
  ASSERT_EQ(result.files.size(), 4u);
  std::set<std::uint64_t> ids;
  Record record;
  for (const char* split : {"p_train", "p_val"}) {
    const RecordSet set(find_records(folder / split));
    EXPECT_EQ(set.size(), split == std::string_view("p_train") ? 14u : 6u);
    for (std::size_t i = 0; i < set.size(); ++i) {
      set.read(i, record);
      ids.insert(record.id);
    }
  }
  EXPECT_EQ(ids.size(), 20u);
}

TEST(Pack, LeavesOutAndNamesWhatCannotBeRead) {
  TemporaryFolder folder;
  write_pictures(folder, 6);
  write_file_atomic(folder / "photos/dog/002.jpg", "no picture");
  const PackResult result = pack(options_of(folder));
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].file, "dog/002.jpg");
  EXPECT_EQ(RecordFile(folder / "p.rec").size(), 5u);
}

TEST(Pack, TakesUpWhatAKilledRunLeft) {
  TemporaryFolder folder;
  write_pictures(folder, 60);
  PackOptions options = options_of(folder, "calm");
  options.shards = 2;
  options.quality = 90;
  pack(options);
  options.out = folder / "killed";
  const pid_t child = ::fork();
  if (child == 0) {
    options.threads = 1;
    options.progress = [](std::uint64_t done, std::uint64_t) {
      if (done == 45) ::kill(::getpid(), SIGKILL);
    };
    pack(options);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::exists(folder / "killed_1.rec"));
  const PackResult result = pack(options);
  EXPECT_GE(result.taken_up, 30u);
  for (const char* name : {"_0.rec", "_0.idx", "_0.lst", "_1.rec", "_1.idx", "_1.lst"}) {
    EXPECT_EQ(read_file(folder / ("killed" + std::string(name))), read_file(folder / ("calm" + std::string(name))));
  }
}

TEST(Pack, KeepsNoRecordsThatAnotherPlanLeft) {
  TemporaryFolder folder;
  write_pictures(folder, 10);
  PackOptions options{
      .sources = {folder / "photos"}, .out = folder / "p", .quality = 40, .shards = 2, .train_ratio = 1, .force = true};
  pack(options);
  std::filesystem::rename(folder / "p_1.rec", folder / "p_1.rec.part");  // as where that run was killed in it
  options.quality = 90;
  options.progress = [](std::uint64_t, std::uint64_t) { throw Error("stopped in the first file"); };
  expect_error<Error>([&] { pack(options); }, "stopped in the first file");
  options.progress = nullptr;
  pack(options);
  options.out = folder / "calm";
  pack(options);
  EXPECT_EQ(read_file(folder / "p_1.rec"), read_file(folder / "calm_1.rec"));
}

TEST(Pack, GoesOnBehindTheLastWholeRecordOfAPart) {
  TemporaryFolder folder;
  write_pictures(folder, 10);
  const PackOptions options = options_of(folder);
  pack(options);
  const std::string whole = read_file(folder / "p.rec");
  std::filesystem::remove(folder / "p.rec");
  write_file_atomic(folder / "p.rec.part", whole.substr(0, whole.size() * 2 / 3));
  const PackResult result = pack(options);
  EXPECT_GT(result.taken_up, 3u);
  EXPECT_LT(result.taken_up, 10u);
  EXPECT_EQ(read_file(folder / "p.rec"), whole);
}

TEST(Pack, BeginsAnewWhenAPictureChanged) {
  TemporaryFolder folder;
  write_pictures(folder, 4);
  pack(options_of(folder));
  write_file_atomic(folder / "photos/cat/001.jpg", encode_image(slope(9, 9, 7), Encoding::jpeg));
  expect_error<UsageError>([&] { pack(options_of(folder)); }, "is there already, made from other pictures");
  PackOptions again = options_of(folder);
  again.force = true;
  EXPECT_EQ(pack(again).taken_up, 0u);
  EXPECT_EQ(image_of(RecordFile(folder / "p.rec"), 0).h, 9);
}

std::vector<float> labels_in(const Path& rec) {
  const RecordFile file(rec);
  std::vector<float> labels;
  for (std::size_t i = 0; i < file.size(); ++i) labels.push_back(file.read(i).labels.front());
  return labels;
}

void write_picture(const Path& file) {
  make_folder(file.parent_path());
  write_file_atomic(file, encode_image(slope(9, 9, 7), Encoding::jpeg));
}

TEST(Pack, TakesFoldersOfTrainingAndValidationForTwoSplits) {
  TemporaryFolder folder;
  for (const char* name :
       {"train/a/1.jpg", "train/b/2.jpg", "train/b/3.jpg", "val/a/4.jpg", "val/b/5.jpg", "stray.jpg"})
    write_picture(folder / "photos" / name);
  const PackResult result = pack(options_of(folder, "p", std::nullopt));
  EXPECT_EQ(result.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(labels_in(folder / "p_train.rec"), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(labels_in(folder / "p_val.rec"), (std::vector<float>{0, 1}));
  EXPECT_EQ(result.skipped.at("beside the folders of the classes"), std::vector<std::string>{"stray.jpg"});
  for (PackOptions again = options_of(folder); const double ratio : {0.5, 1.0}) {
    again.train_ratio = ratio;
    expect_error<UsageError>([&] { pack(again); }, "is split already, by its folders");
  }
}

TEST(Pack, NamesTheFilesThatItLeavesOut) {
  TemporaryFolder folder;
  write_picture(folder / "photos/a/1.jpg");
  write_file_atomic(folder / "photos/a/2.gif", "GIF8");
  write_file_atomic(folder / "photos/README", "text");
  const PackResult result = pack(options_of(folder));
  EXPECT_EQ(result.skipped.at(".gif"), std::vector<std::string>{"a/2.gif"});
  EXPECT_EQ(result.skipped.at("no ending"), std::vector<std::string>{"README"});
}

TEST(Pack, SplitsEachClassInTheSameShares) {
  TemporaryFolder folder;
  for (int i = 0; i < 40; ++i) write_picture(folder / fmt::format("photos/many/{}.jpg", i));
  for (int i = 0; i < 4; ++i) write_picture(folder / fmt::format("photos/some/{}.jpg", i));
  PackOptions options = options_of(folder);
  options.train_ratio = 0.75;
  for (options.seed = 1; options.seed < 5; ++options.seed, options.force = true) {
    pack(options);
    EXPECT_EQ(std::ranges::count(labels_in(folder / "p_train.rec"), 1.0f), 3);
    EXPECT_EQ(std::ranges::count(labels_in(folder / "p_val.rec"), 1.0f), 1);
    EXPECT_EQ(labels_in(folder / "p_val.rec").size(), 11u);
  }
}

TEST(Pack, FoldersOfTrainingValidationAndTestAreThreeSplits) {
  TemporaryFolder folder;
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "val/b/2.jpg", "test/a/3.jpg", "test/b/3.jpg"})
    write_picture(folder / "photos" / name);
  const PackResult result = pack(options_of(folder, "p", std::nullopt));
  ASSERT_EQ(result.files.size(), 3u);
  EXPECT_EQ(labels_in(folder / "p_val.rec"), (std::vector<float>{1}));
  EXPECT_EQ(labels_in(folder / "p_test.rec"), (std::vector<float>{0, 1}));
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{2, 3}));
  std::filesystem::remove_all(folder / "photos/val");
  PackOptions again = options_of(folder, "q", std::nullopt);
  EXPECT_EQ(pack(again).files.size(), 2u);
}

TEST(Pack, SplitsEachClassIntoTrainingValidationAndTest) {
  TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) write_picture(folder / fmt::format("photos/many/{}.jpg", i));
  for (int i = 0; i < 3; ++i) write_picture(folder / fmt::format("photos/some/{}.jpg", i));
  PackOptions options = options_of(folder);
  options.train_ratio = 0.7;
  options.test_ratio = 0.1;
  pack(options);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "p_train.rec"), 0.0f), 14);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "p_val.rec"), 0.0f), 4);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "p_test.rec"), 0.0f), 2);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "p_test.rec"), 1.0f) +
                std::ranges::count(labels_in(folder / "p_val.rec"), 1.0f),
            1);
  options.out = folder / "q";
  options.train_ratio = 1;
  EXPECT_EQ(pack(options).files.size(), 2u);  // all that is no test trains
  options.train_ratio = 0.95;
  expect_error<UsageError>([&] { pack(options); }, "more than setting 'train-ratio' 0.95 leaves");
}

TEST(Pack, AFolderOfClassesIsSplitUnlessItIsAskedForOneSet) {
  TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) write_picture(folder / fmt::format("photos/many/{}.jpg", i));
  for (int i = 0; i < 2; ++i) write_picture(folder / fmt::format("photos/some/{}.jpg", i));
  PackOptions options = options_of(folder);
  options.train_ratio = std::nullopt;
  const PackResult usual = pack(options);
  ASSERT_EQ(usual.files.size(), 2u);
  ASSERT_TRUE(usual.shares.has_value());
  EXPECT_DOUBLE_EQ(usual.shares->train, 0.8);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "p_train.rec"), 0.0f), 16);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "p_val.rec"), 1.0f), 1);
  options.train_ratio = 0.8;
  EXPECT_EQ(pack(options).taken_up, 22u);  // the same set, said in so many words
  options.train_ratio = std::nullopt;
  options.test_ratio = 0.5;
  options.out = folder / "q";
  pack(options);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "q_train.rec"), 0.0f), 8);
  EXPECT_EQ(std::ranges::count(labels_in(folder / "q_test.rec"), 0.0f), 10);
}

TEST(Pack, OneClassAloneAndListsAreOneSet) {
  TemporaryFolder folder;
  for (int i = 0; i < 4; ++i) write_picture(folder / fmt::format("photos/all/{}.jpg", i));
  PackOptions options = options_of(folder);
  options.train_ratio = std::nullopt;
  EXPECT_FALSE(pack(options).shares.has_value());
  EXPECT_TRUE(std::filesystem::exists(folder / "p.rec"));
  write_file_atomic(folder / "l.lst", "0\t0\tall/0.jpg\n1\t1\tall/1.jpg\n2\t1\tall/2.jpg\n");
  options.sources = {folder / "l.lst"};
  options.root = folder / "photos";
  options.out = folder / "q";
  EXPECT_EQ(pack(options).files.size(), 1u);
}

TEST(Pack, CountsPicturesWithSeveralLabels) {
  TemporaryFolder folder;
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"}) write_picture(folder / "photos" / name);
  write_file_atomic(folder / "l.lst", "0\t0\t1.jpg\n1\t1\t2\t2.jpg\n2\t1\t2\t3.jpg\n3\t1\t2\tnone.jpg\n");
  PackOptions options = options_of(folder);
  options.sources = {folder / "l.lst"};
  options.root = folder / "photos";
  EXPECT_EQ(pack(options).several_labels, 2u) << "without the one that is not there";
}

TEST(Pack, SaysHowToPackClassesThatAreTooSmallToSplit) {
  TemporaryFolder folder;
  write_pictures(folder, 2);
  PackOptions options = options_of(folder);
  options.train_ratio = std::nullopt;
  expect_error<UsageError>([&] { pack(options); }, "p_val: the classes have too few pictures");
}

TEST(Pack, TakesLabelsFromACsvFile) {
  TemporaryFolder folder;
  for (const char* name : {"1.jpg", "2.jpg", "below/3.jpg"}) write_picture(folder / "photos" / name);
  write_file_atomic(folder / "l.csv", "file,class\r\n1.jpg,dog\r\n\"below/3.jpg\",\"cat, small\"\r\n2.jpg, dog\r\n");
  PackOptions options = options_of(folder);
  options.labels = folder / "l.csv";
  EXPECT_EQ(pack(options).classes, (std::vector<std::string>{"cat, small", "dog"}));
  EXPECT_EQ(labels_in(folder / "p.rec"), (std::vector<float>{1, 0, 1}));
  write_file_atomic(folder / "l.csv", "1.jpg,10\n2.jpg,9\nnone.jpg,0\n");
  options.force = true;
  const PackResult numbers = pack(options);
  EXPECT_TRUE(numbers.classes.empty());
  EXPECT_EQ(labels_in(folder / "p.rec"), (std::vector<float>{10, 9}));
  ASSERT_EQ(numbers.problems.size(), 1u);
  EXPECT_EQ(numbers.problems.front().file, "none.jpg");
  write_file_atomic(folder / "l.csv", "1.jpg,dog\n2.jpg\n");
  expect_error([&] { pack(options); }, "l.csv: line 2: not \"path,label\"");
  options.sources = {folder / "photos/1.jpg"};
  expect_error<UsageError>([&] { pack(options); }, "names files of a folder");
}

TEST(Pack, TakesARowThatNamesNoPictureForTheHeaderOfLabels) {
  TemporaryFolder folder;
  write_picture(folder / "photos/1.jpg");
  PackOptions options = options_of(folder);
  options.labels = folder / "l.csv";
  options.force = true;
  for (const char* header : {"file,label", "file.name,label", "image.path , class"}) {
    write_file_atomic(folder / "l.csv", std::string(header) + "\n1.jpg,dog\n");
    const PackResult result = pack(options);
    EXPECT_EQ(result.classes, std::vector<std::string>{"dog"}) << header;
    EXPECT_TRUE(result.problems.empty()) << header;
  }
  write_file_atomic(folder / "l.csv", "none.gif,cat\n1.jpg,dog\n");
  EXPECT_EQ(pack(options).problems.size(), 1u) << "a missing picture in the first row is reported";
}

TEST(Pack, NewNamesOfTheSameLabelsAreAnotherPlan) {
  TemporaryFolder folder;
  write_picture(folder / "photos/1.jpg");
  write_file_atomic(folder / "l.csv", "1.jpg,dog\n");
  PackOptions options = options_of(folder);
  options.labels = folder / "l.csv";
  pack(options);
  write_file_atomic(folder / "l.csv", "1.jpg,hound\n");
  expect_error<UsageError>([&] { pack(options); }, "is there already");
}

TEST(Pack, NamesTheLineOfAListThatIsNone) {
  expect_error([] { parse_list("1\t0\ta.jpg\n2\ta.jpg\n", "x.lst", ""); }, "x.lst: line 2");
  const PackList list = parse_list("7\t1.5\t2\ta b.jpg\r\n", "x.lst", "");
  EXPECT_EQ(list.items.at(0).labels, (std::vector<float>{1.5, 2}));
  EXPECT_EQ(list.items.at(0).file, "a b.jpg");
}

}  // namespace
}  // namespace dtrain::data
