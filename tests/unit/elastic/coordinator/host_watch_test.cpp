#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/host_file.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

// A watcher that is polled twice a second of its own clock.
class Watch : public testing::Test {
 protected:
  // The names of every list that was accepted within this time.
  std::vector<Names> pass(std::chrono::milliseconds time) {
    std::vector<Names> accepted;
    for (const auto end = now_ + time; now_ < end; now_ += 100ms) {
      const std::optional<HostList> list = watcher_.poll(now_);
      if (!list) continue;
      accepted.emplace_back();
      for (const HostLine& host : list->hosts) accepted.back().push_back(host.name);
    }
    return accepted;
  }
  void write(std::string_view text) { write_in_place(path_, text); }
  void append(std::string_view text) { write_in_place(path_, text, true); }

  // Two hosts that are accepted.
  void begin() {
    write("w1\nw2\n");
    ASSERT_EQ(pass(3s), std::vector<Names>(1, {"w1", "w2"}));
  }

  TemporaryFolder folder_;
  const Path path_ = folder_ / "host_worker";
  HostFileWatcher watcher_{path_, 2s};
  HostFileWatcher::Time now_{};
};

using Lists = std::vector<Names>;

TEST_F(Watch, AnEditCountsOnceAfterItStoodStillForTwoSeconds) {
  begin();
  append("w3\n");
  EXPECT_EQ(pass(1900ms), Lists{});
  EXPECT_EQ(pass(60s), (Lists{{"w1", "w2", "w3"}}));
}

TEST_F(Watch, AFileWrittenInHalvesIsNeverSeenHalf) {
  begin();
  write("w1\n");
  EXPECT_EQ(pass(700ms), Lists{});
  append("w2\n");
  EXPECT_EQ(pass(700ms), Lists{});
  append("w3\n");
  EXPECT_EQ(pass(10s), (Lists{{"w1", "w2", "w3"}}));
}

TEST_F(Watch, AHalfThatStaysForGoodDoesNotCountWithoutItsNewline) {
  begin();
  write("w1\nw");
  EXPECT_EQ(pass(60s), Lists{});
  append("2\n");
  EXPECT_EQ(pass(60s), Lists{}) << "it is what was accepted before";
}

TEST_F(Watch, TruncatedDeletedAndFoldersInItsPlaceNeverCount) {
  begin();
  write("");
  EXPECT_EQ(pass(60s), Lists{});
  std::filesystem::remove(path_);
  EXPECT_EQ(pass(60s), Lists{});
  std::filesystem::create_directory(path_);
  EXPECT_EQ(pass(60s), Lists{});
  std::filesystem::remove(path_);
  write("\n# nobody\n\n");
  EXPECT_EQ(pass(60s), Lists{});
  write("w1\nw2\n");
  EXPECT_EQ(pass(60s), Lists{});
}

TEST_F(Watch, BinaryJunkAndZeroesNeverCount) {
  begin();
  write(
      std::string("\x7f"
                  "ELF\0\0\1\2\n",
                  9));
  EXPECT_EQ(pass(60s), Lists{});
  write("w1\n" + std::string(4096, '\0') + "\n");
  EXPECT_EQ(pass(60s), Lists{});
  write("\xff\xfe junk\n\x01\n");
  EXPECT_EQ(pass(60s), Lists{});
}

TEST_F(Watch, CopiesAndRenamesCountLikeEdits) {
  begin();
  write_in_place(folder_ / "new", "w1\nw2\nw3\n");
  std::filesystem::copy_file(folder_ / "new", path_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(pass(5s), (Lists{{"w1", "w2", "w3"}}));
  write_in_place(folder_ / "new", "w3\r\nw2\r\n");
  std::filesystem::rename(folder_ / "new", path_);
  EXPECT_EQ(pass(5s), (Lists{{"w3", "w2"}}));
  write_file_atomic(path_, "w9\n");
  EXPECT_EQ(pass(5s), (Lists{{"w9"}}));
}

TEST_F(Watch, AnEditThatIsTakenBackInTimeWasNone) {
  begin();
  write("w1\n");
  EXPECT_EQ(pass(1500ms), Lists{});
  write("w1\nw2\n");
  EXPECT_EQ(pass(60s), Lists{});
}

TEST_F(Watch, EqualSizeAndTimeDoNotHideAnEdit) {
  begin();
  const auto time = std::filesystem::last_write_time(path_);
  write("w1\nw3\n");
  std::filesystem::last_write_time(path_, time);
  EXPECT_EQ(pass(5s), (Lists{{"w1", "w3"}}));
}

TEST_F(Watch, AFileThatKeepsChangingWaitsUntilItRests) {
  begin();
  for (int i = 0; i < 20; ++i) {
    append("w1" + std::to_string(i) + "\n");
    EXPECT_EQ(pass(1s), Lists{});
  }
  EXPECT_EQ(pass(5s).size(), 1u);
}

TEST_F(Watch, AnEditThatIsNotUsedForSecondsHasItsReasonOnce) {
  begin();
  for (const auto& [text, problem] :
       {std::pair{"w1\nw3", "no final newline"}, std::pair{"-w1\n", "names no host: line 1: "},
        std::pair{"# none\n", "names no host"}}) {
    write(text);
    EXPECT_EQ(pass(6s), Lists{});
    EXPECT_FALSE(watcher_.take_problem()) << text;
    EXPECT_EQ(pass(3s), Lists{});
    const std::optional<std::string> told = watcher_.take_problem();
    ASSERT_TRUE(told) << text;
    EXPECT_TRUE(told->starts_with(problem)) << *told;
    EXPECT_EQ(pass(60s), Lists{});
    EXPECT_FALSE(watcher_.take_problem()) << text;
  }
}

TEST_F(Watch, AFileThatAppearsLaterIsFound) {
  EXPECT_EQ(pass(30s), Lists{});
  write("w1\n");
  EXPECT_EQ(pass(30s), (Lists{{"w1"}}));
}

TEST_F(Watch, AFileThatCannotBeReadNowNeverCounts) {
  begin();
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(folder_ / "nowhere", path_);
  EXPECT_EQ(pass(10s), Lists{});
  write_in_place(folder_ / "nowhere", "w1\n");
  EXPECT_EQ(pass(10s), (Lists{{"w1"}}));
}

TEST(HostWatch, HostsThatDoNotSayHaveTheSlotsThatTheJobGivesThem) {
  TemporaryFolder folder;
  write_file_atomic(folder / "host_worker", "w1\nw2 slots=2\n");
  HostFileWatcher watcher(folder / "host_worker", 0ms, 4);
  const std::optional<HostList> list = watcher.poll({});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->hosts[0].slots, 4);
  EXPECT_EQ(list->hosts[1].slots, 2);
}

TEST(HostListIn, AFileWithoutAHostSaysWhyItsLinesAreNone) {
  TemporaryFolder folder;
  write_file_atomic(folder / "host_worker", "-x\n");
  try {
    (void)host_list_in(folder / "host_worker");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("host_worker names no host"), std::string::npos);
    EXPECT_TRUE(error.hint().starts_with("line 1: ")) << error.hint();
  }
  EXPECT_THROW((void)host_list_in(folder / "another"), Error);
}

}  // namespace
}  // namespace dtrain::elastic
