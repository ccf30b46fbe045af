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
  // Steps of two samples.
  static Cursor at(std::uint32_t epoch, std::uint64_t step) {
    return {.epoch = epoch, .step = step, .position = 2 * step};
  }

  Path folder_;
};

TEST_F(LedgerFolder, AddsWhatAllWorkersConsumed) {
  LedgerWriter a = writer("a"), b = writer("b");
  for (LedgerWriter* each : {&a, &b}) each->begin_generation(1, at(0, 0), 4);
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
  for (LedgerWriter* each : {&a, &b}) each->begin_generation(1, at(0, 0), 4);
  a.add(at(0, 0), Ids{1});
  a.add(at(0, 1), Ids{2});
  a.add(at(0, 2), Ids{3});
  b.begin_generation(2, at(0, 1), 4);
  b.add(at(0, 1), Ids{7});
  const Ledger ledger = read_ledger(folder_);
  EXPECT_EQ(ledger.epoch(0), (Ids{1, 7}));
}

// With parameter servers the batches behind a lost one may be trained already.
TEST_F(LedgerFolder, ALaterGenerationKeepsTheStepsThatItDoesNotTakeAgain) {
  LedgerWriter a = writer("a"), b = writer("b");
  for (LedgerWriter* each : {&a, &b}) each->begin_generation(1, at(0, 0), 8);
  a.add(at(0, 0), Ids{1});
  b.add(at(0, 1), Ids{2});
  a.add(at(0, 2), Ids{3});
  a.add(at(0, 3), Ids{4});
  a.begin_generation(2, at(0, 1), 8, {2});
  a.add(at(0, 1), Ids{2});
  const Ledger ledger = read_ledger(folder_);
  EXPECT_EQ(ledger.epoch(0), (Ids{1, 2, 3}));
}

TEST_F(LedgerFolder, CountsWhatALostWorkerDidNotRecord) {
  LedgerWriter a = writer("a"), b = writer("b");
  for (LedgerWriter* each : {&a, &b}) each->begin_generation(1, at(0, 0), 4);
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t step = 0; step < 2; ++step) {
      a.add(at(epoch, step), Ids{1});
      b.add(at(epoch, step), Ids{2});
    }
  }
  a.add(at(2, 0), Ids{1});
  EXPECT_TRUE(read_ledger(folder_).missing().empty()) << "the last step may be incomplete";
  b.add(at(2, 0), Ids{2});
  a.add(at(2, 1), Ids{3});
  a.add(at(3, 0), Ids{1});
  b.add(at(3, 1), Ids{2});
  b.add(at(4, 1), Ids{2});
  const std::map<std::uint32_t, std::uint64_t> expected = {{2, 1}, {3, 2}, {4, 2}};
  EXPECT_EQ(read_ledger(folder_).missing(), expected);
}

TEST_F(LedgerFolder, GoesOnAfterALineThatACrashCutOff) {
  {
    LedgerWriter a = writer("a");
    a.begin_generation(1, at(0, 0), 4);
    a.add(at(0, 0), Ids{1});
  }
  std::ofstream(folder_ / "a.jsonl", std::ios::app) << "\n{\"generation\": 1, \"epoch\": 0, \"ste";
  LedgerWriter again = writer("a");
  again.begin_generation(1, at(0, 1), 4);
  again.add(at(0, 1), Ids{5});
  EXPECT_EQ(read_ledger(folder_).epoch(0), (Ids{1, 5}));
}

// Nobody adds a line any more after a worker's last step.
TEST_F(LedgerFolder, WritesAtTheEndWhatAFullDiskRefused) {
  const SmallFiles disk;
  LedgerWriter a = writer("a");
  a.begin_generation(1, at(0, 0), 4);
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
  a.begin_generation(1, at(0, 0), 4);
  EXPECT_NE(a.take_complaint(), "");
  a.finish(std::chrono::milliseconds(60));
  EXPECT_NE(a.take_complaint().find("the last lines are lost"), std::string::npos);
}

TEST_F(LedgerFolder, NamesAFolderThatIsNotThere) { EXPECT_THROW(read_ledger(folder_ / "none"), Error); }

}  // namespace
}  // namespace dtrain::train
