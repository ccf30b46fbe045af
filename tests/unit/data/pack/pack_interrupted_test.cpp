// A set that is made of its own files, and was interrupted: it goes on, and keeps the names of its classes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using ClassTexts = std::vector<std::string>;

class PackInterrupted : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures("photos/cat");
    write_pictures("photos/dog");
    pack(options_from("photos"));
  }
  // Pictures of one pixel, all different.
  void write_pictures(const std::string& of) {
    make_folder(folder / of);
    for (int i = 0; i < 5; ++i) {
      const Image image{1, 1, 1, {static_cast<std::uint8_t>(next_++)}};
      write_file_atomic(folder / fmt::format("{}/{}.png", of, i), encode_image(image, Encoding::png));
    }
  }
  PackOptions options_from(const std::string& source) const {
    return {.sources = {folder / source},
            .out = folder / "p",
            .encoding = std::nullopt,
            .train_ratio = 1,
            .threads = 2,
            .force = true};
  }
  static void stop_at_third(PackOptions options) {
    options.progress = [](std::uint64_t done, std::uint64_t) {
      if (done == 3) throw Error("stopped at the third picture");
    };
    expect_error<Error>([&] { pack(options); }, "stopped at the third picture");
  }
  PackOptions in_files(int shards, std::uint64_t seed) const {
    PackOptions options = options_from("photos");
    options.shards = shards;
    options.shuffle = true;
    options.seed = seed;
    return options;
  }
  // A folder, which no file replaces.
  void put_in_the_way(const char* file) const {
    std::filesystem::remove(folder / file);
    make_folder(folder / file / "full");
  }
  bool is_there(const char* file) const { return std::filesystem::exists(folder / file); }
  std::size_t records_of(const char* set) const { return RecordSet(find_records((folder / set).string())).size(); }
  void expect_refused(const char* set) const {
    expect_error([&] { find_records((folder / set).string()); }, "is not finished, as ");
  }
  ClassTexts classes_of(const char* set) const { return class_names(find_records((folder / set).string())); }

  TemporaryFolder folder;
  const ClassTexts catdog{"cat", "dog"};

 private:
  int next_ = 0;
};

TEST_F(PackInterrupted, ASetOfItselfGoesOnWithItsPartAndTheNamesOfItsClasses) {
  PackOptions options = options_from("p");
  options.shuffle = true;
  options.out = folder / "q";
  pack(options);
  const std::string whole = read_file(folder / "q.rec");
  options.out = folder / "p";
  stop_at_third(options);
  ASSERT_NE(read_file(folder / "p.rec"), whole);
  write_file_atomic(folder / "p.rec.part", whole.substr(0, whole.size() * 2 / 3));  // what a kill may leave
  const PackResult result = pack(options);
  EXPECT_GE(result.taken_up, 6u);
  EXPECT_EQ(result.classes, catdog);
  EXPECT_EQ(classes_of("p"), catdog);
  EXPECT_EQ(read_file(folder / "p.rec"), whole);
  EXPECT_EQ(read_file(folder / "p.pack.json").find("earlier"), std::string::npos);
}

TEST_F(PackInterrupted, ASetOfItselfKeepsTheNamesOfItsClassesWithOtherOptionsToo) {
  PackOptions options = options_from("p");
  for (const int seed : {1, 2, 3}) {
    options.shuffle = true;
    options.seed = static_cast<std::uint64_t>(seed);
    stop_at_third(options);
  }
  options.shuffle = false;
  EXPECT_EQ(pack(options).classes, catdog);
  EXPECT_EQ(classes_of("p"), catdog);
}

TEST_F(PackInterrupted, TheRecordsOfAnEarlierSetHaveTheNamesOfTheirOwnClasses) {
  write_pictures("birds/emu");
  write_pictures("birds/owl");
  stop_at_third(options_from("birds"));
  const PackOptions options = options_from("p");  // whose records are still those of cats and dogs
  stop_at_third(options);
  EXPECT_EQ(pack(options).classes, catdog);
  EXPECT_EQ(classes_of("p"), catdog);
  EXPECT_EQ(pack(options_from("birds")).classes, (ClassTexts{"emu", "owl"}));
  EXPECT_EQ(classes_of("p"), (ClassTexts{"emu", "owl"}));
}

// A file that cannot be removed stands for a run that was killed before it removed what the new set lacks.
TEST_F(PackInterrupted, FilesOfTheEarlierSetAreNotReadAsAPartOfTheNewOne) {
  pack(in_files(3, 1));
  put_in_the_way("p_2.idx");
  for (int run = 0; run < 2; ++run) {
    expect_error<Error>([&] { pack(in_files(2, 2)); }, "p_2.idx: cannot remove this file of an earlier set");
    ASSERT_TRUE(is_there("p_1.rec") && is_there("p_2.rec"));
    for (const char* set : {"p", "p_*.rec", "p_2.rec"}) expect_refused(set);
  }
  EXPECT_EQ(records_of("p_1.rec"), 5u) << "it is of the new set";
  std::filesystem::remove_all(folder / "p_2.idx");
  EXPECT_EQ(pack(in_files(2, 2)).taken_up, 10u);
  EXPECT_EQ(records_of("p"), 10u);
  for (const char* ending : {"p_2.rec", "p_2.idx", "p_2.lst"}) EXPECT_FALSE(is_there(ending)) << ending;
  EXPECT_EQ(read_file(folder / "p.pack.json").find("unfinished"), std::string::npos);
}

TEST_F(PackInterrupted, FilesOfTwoSetsAreNotReadWhileAThirdIsMade) {
  pack(in_files(2, 1));
  PackOptions second = in_files(2, 2);
  second.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 8) throw Error("stopped in the second file");
  };
  expect_error<Error>([&] { pack(second); }, "stopped in the second file");
  expect_refused("p");
  stop_at_third(in_files(1, 3));
  for (const char* set : {"p", "p_*.rec", "p_1.rec"}) expect_refused(set);
  pack(in_files(1, 3));
  EXPECT_EQ(records_of("p"), 10u);
  EXPECT_FALSE(is_there("p_0.rec") || is_there("p_1.rec"));
}

TEST_F(PackInterrupted, APartOfAStoppedSetIsNotReadWhileAnotherIsMade) {
  PackOptions second = in_files(2, 2);
  second.out = folder / "q";
  second.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 8) throw Error("stopped in the second file");
  };
  expect_error<Error>([&] { pack(second); }, "stopped in the second file");
  PackOptions third = in_files(1, 3);
  third.out = folder / "q";
  stop_at_third(third);
  ASSERT_TRUE(is_there("q_0.rec"));
  for (const char* set : {"q", "q_*.rec"}) expect_refused(set);
  pack(third);
  EXPECT_FALSE(is_there("q_0.rec"));
  EXPECT_EQ(read_file(folder / "q.pack.json").find("unfinished"), std::string::npos);
}

TEST_F(PackInterrupted, ASetWhoseFilesANewPlanDoesNotWriteIsReadUntilThatIsMade) {
  pack(in_files(2, 1));
  stop_at_third(in_files(1, 3));
  EXPECT_EQ(records_of("p_0.rec"), 5u);
  EXPECT_EQ(records_of("p"), 10u);
}

// A folder in the way of the index stands for a run that was killed between the records and the journal.
TEST_F(PackInterrupted, RecordsThatTheJournalCallsUnfinishedGoWithTheNextPlan) {
  PackOptions options = in_files(2, 1);
  options.out = folder / "q";
  put_in_the_way("q_0.idx");
  EXPECT_THROW(pack(options), std::exception);
  ASSERT_TRUE(is_there("q_0.rec"));
  std::filesystem::remove_all(folder / "q_0.idx");
  options.shards = 1;
  pack(options);
  EXPECT_FALSE(is_there("q_0.rec"));
  EXPECT_EQ(records_of("q"), 10u);
}

}  // namespace
}  // namespace dtrain::data
