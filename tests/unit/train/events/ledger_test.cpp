#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/train/ledger.hpp>

#include "common/small_files.hpp"

namespace dtrain::train {
namespace {

using Ids = std::vector<std::uint32_t>;

class LedgerFolder : public testing::Test {
 protected:
  LedgerFolder() : folder_(Path(testing::TempDir()) / ("ledger_test_" + std::to_string(::getpid()))) {}
  ~LedgerFolder() override { std::filesystem::remove_all(folder_); }

  LedgerWriter writer(const char* worker) const { return LedgerWriter({folder_, worker}); }
  static Cursor at(std::uint32_t epoch, std::uint64_t step) { return {.epoch = epoch, .step = step}; }

  Path folder_;
};

TEST_F(LedgerFolder, AddsWhatAllWorkersConsumed) {
  LedgerWriter a = writer("a"), b = writer("b");
  for (LedgerWriter* each : {&a, &b}) each->begin_generation(1, at(0, 0));
  a.add(at(0, 0), Ids{4, 2});
  b.add(at(0, 0), Ids{1});
  b.add(at(0, 1), Ids{2});
  const Ledger ledger = read_ledger(folder_);
  EXPECT_EQ(ledger.steps.at({0, 0}), (Ids{1, 2, 4}));
  EXPECT_EQ(ledger.epoch(0), (Ids{1, 2, 2, 4}));
  EXPECT_EQ(ledger.epoch(1), Ids{});
}

TEST_F(LedgerFolder, ALaterGenerationReplacesWhatCameAfterItsStart) {
  LedgerWriter a = writer("a"), b = writer("b");
  for (LedgerWriter* each : {&a, &b}) each->begin_generation(1, at(0, 0));
  a.add(at(0, 0), Ids{1});
  a.add(at(0, 1), Ids{2});
  a.add(at(0, 2), Ids{3});
  b.begin_generation(2, at(0, 1));
  b.add(at(0, 1), Ids{7});
  const Ledger ledger = read_ledger(folder_);
  EXPECT_EQ(ledger.epoch(0), (Ids{1, 7}));
}

TEST_F(LedgerFolder, GoesOnAfterALineThatACrashCutOff) {
  {
    LedgerWriter a = writer("a");
    a.begin_generation(1, at(0, 0));
    a.add(at(0, 0), Ids{1});
  }
  std::ofstream(folder_ / "a.jsonl", std::ios::app) << "\n{\"generation\": 1, \"epoch\": 0, \"ste";
  LedgerWriter again = writer("a");
  again.begin_generation(1, at(0, 1));
  again.add(at(0, 1), Ids{5});
  EXPECT_EQ(read_ledger(folder_).epoch(0), (Ids{1, 5}));
}

// Nobody adds a line any more after a worker's last step.
TEST_F(LedgerFolder, WritesAtTheEndWhatAFullDiskRefused) {
  const SmallFiles disk;
  LedgerWriter a = writer("a");
  a.begin_generation(1, at(0, 0));
  disk.limit(60);
  a.add(at(0, 0), Ids{1, 2, 3});
  EXPECT_NE(a.take_complaint(), "");
  disk.lift();
  a.finish({});
  EXPECT_EQ(a.take_complaint(), "");
  EXPECT_EQ(read_ledger(folder_).epoch(0), (Ids{1, 2, 3}));
}

TEST_F(LedgerFolder, SaysWhatIsLostWhereTheDiskStaysFull) {
  const SmallFiles disk;
  LedgerWriter a = writer("a");
  disk.limit(10);
  a.begin_generation(1, at(0, 0));
  EXPECT_NE(a.take_complaint(), "");
  a.finish(std::chrono::milliseconds(60));
  EXPECT_NE(a.take_complaint().find("the last lines are lost"), std::string::npos);
}

TEST_F(LedgerFolder, NamesAFolderThatIsNotThere) { EXPECT_THROW(read_ledger(folder_ / "none"), Error); }

}  // namespace
}  // namespace dtrain::train
