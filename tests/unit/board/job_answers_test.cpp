#include "job_answers.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "job/queue/job_queue.hpp"

namespace dtrain::board {
namespace {

// Two samples an epoch, in a step of its own; the last epoch has consumed one of them.
train::Ledger ledger(std::uint32_t epochs) {
  train::Ledger ledger;
  ledger.samples = 2;
  for (std::uint32_t epoch = 0; epoch + 1 < epochs; ++epoch) ledger.steps[{epoch, 0}] = {0, 1};
  ledger.steps[{epochs - 1, 0}] = {0};
  return ledger;
}

bool is_complete(const Json& verdict, std::size_t epoch) {
  return verdict.at("epochs").as_array().at(epoch).at("complete").as_bool();
}

TEST(LedgerVerdict, AFileThatWasReadBeforeItsWorkerLeftTheEpochIsReadAgain) {
  int reads = 0;
  const Json verdict = ledger_verdict([&] {
    train::Ledger found = ledger(++reads == 1 ? 3 : 5);
    if (reads == 1) found.steps[{1, 0}] = {1};  // of one worker, whose file was read first
    return found;
  });
  EXPECT_EQ(reads, 2);
  ASSERT_EQ(verdict.at("epochs").as_array().size(), 3u) << "epochs that began meanwhile are not judged";
  EXPECT_EQ(verdict.at("epochs").as_array()[0].at("epoch").as_integer(), 1) << "counted as everywhere on the board";
  EXPECT_TRUE(is_complete(verdict, 1));
}

TEST(ActOnJob, AStopIsFinalForTheQueueOfTheJob) {
  const TemporaryFolder folder;
  job::JobQueue queue(folder / "q");
  queue.submit({.words = {"launch"}}, false);
  act_on_job(queue.at(1).folder.string(), R"({"action":"stop"})");  // between two attempts: no coordinator hears it
  EXPECT_TRUE(queue.at(1).cancelled);
  EXPECT_FALSE(queue.at(1).cancelled_now);
  EXPECT_THROW(act_on_job(folder.path().string(), R"({"action":"stop"})"), UsageError) << "a folder of no job";
}

TEST(LedgerVerdict, AnEpochThatLacksASampleForGoodIsWrong) {
  const Json verdict = ledger_verdict([] {
    train::Ledger found = ledger(3);
    found.steps[{0, 0}] = {1};
    return found;
  });
  EXPECT_FALSE(is_complete(verdict, 0));
  EXPECT_FALSE(verdict.at("epochs").as_array()[0].at("unfinished").as_bool());
  EXPECT_TRUE(is_complete(verdict, 1));
  EXPECT_TRUE(verdict.at("epochs").as_array()[2].at("unfinished").as_bool());
}

}  // namespace
}  // namespace dtrain::board
