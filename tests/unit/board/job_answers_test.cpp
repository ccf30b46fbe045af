#include "job_answers.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "job/queue/job_queue.hpp"
#include "job/spec/job_folder.hpp"

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

Json list_of(const Json& host, double goodput) {
  return Json::object({{"goodput_percent", goodput}, {"hosts", Json::array({host})}});
}

TEST(LiveAnswer, HasTheAdviceOfHostsListAndNoGoodputThatWasNotMeasured) {
  const Json host = Json::object({{"name", "h3"},
                                  {"reason", "failed: its host key changed"},
                                  {"forget_key", "ssh-keygen -R h3"},
                                  {"next", "dtrain hosts remove h3"},
                                  {"workers", Json::array()}});
  const Json answer = live_answer(list_of(host, 0), "/jobs/a b");
  EXPECT_EQ(answer.at("hosts").as_array().at(0).at("next").as_string(),
            "ssh-keygen -R h3; or dtrain hosts remove h3 --job-dir '/jobs/a b'");
  EXPECT_TRUE(answer.at("goodput_percent").is_null());
  EXPECT_EQ(live_answer(list_of(host, 93.4), "/jobs").at("goodput_percent").as_number(), 93.4);
}

TEST(LedgerVerdict, AFileThatWasReadBeforeItsWorkerLeftTheEpochIsReadAgain) {
  int reads = 0;
  const Json verdict = ledger_verdict(
      [&] {
        train::Ledger found = ledger(++reads == 1 ? 3 : 5);
        if (reads == 1) found.steps[{1, 0}] = {1};  // of one worker, whose file was read first
        return found;
      },
      SampleIds::records);
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

// In a folder that another user fills, it may lead to a job of the user who looks at the page.
TEST(ActOnJob, ALinkInPlaceOfTheCoordinatorsFileIsNotFollowed) {
  const TemporaryFolder folder;
  const job::JobFolder own{folder / "own"}, shown{folder / "shown"};
  for (const job::JobFolder& job : {own, shown}) std::filesystem::create_directories(job.path);
  job::write_coordinator(own, {.pid = 1, .host = "h", .addresses = {"127.0.0.1"}, .port = 1, .token = "t"});
  std::filesystem::create_symlink(own.coordinator(), shown.coordinator());
  EXPECT_FALSE(live_hosts(shown.path.string()).at("running").as_bool());
  EXPECT_EQ(live_hosts(shown.path.string()).find("reason"), nullptr) << "its coordinator was called";
  EXPECT_NE(live_hosts(own.path.string()).find("reason"), nullptr);
  for (const char* wish : {R"({"action":"stop"})", R"({"action":"drain","host":"h1"})"}) {
    try {
      act_on_job(shown.path.string(), wish);
      FAIL() << wish;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("is a link"), std::string::npos) << error.what();
    }
  }
}

TEST(LedgerVerdict, HasNoRecordsBehindALink) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "own/ledger");
  std::filesystem::create_directories(folder / "job/ledger");
  write_file_atomic(folder / "own/ledger/w.jsonl", R"({"generation":1,"start":{"epoch":0,"step":0},"samples":1})");
  EXPECT_TRUE(ledger_check((folder / "own").string(), "").at("recorded").as_bool());
  std::filesystem::create_symlink(folder / "own/ledger/w.jsonl", folder / "job/ledger/w.jsonl");
  EXPECT_FALSE(ledger_check((folder / "job").string(), "").at("recorded").as_bool());
  std::filesystem::remove_all(folder / "job/ledger");
  std::filesystem::create_directory_symlink(folder / "own/ledger", folder / "job/ledger");
  EXPECT_FALSE(ledger_check((folder / "job").string(), "").at("recorded").as_bool());
}

TEST(LedgerVerdict, AnEpochThatLacksASampleForGoodIsWrong) {
  const Json verdict = ledger_verdict(
      [] {
        train::Ledger found = ledger(3);
        found.steps[{0, 0}] = {1};
        return found;
      },
      SampleIds::records);
  EXPECT_FALSE(is_complete(verdict, 0));
  EXPECT_FALSE(verdict.at("epochs").as_array()[0].at("unfinished").as_bool());
  EXPECT_TRUE(is_complete(verdict, 1));
  EXPECT_TRUE(verdict.at("epochs").as_array()[2].at("unfinished").as_bool());
}

// Ids of copies are position + copy * records: here the second and third copy of record 1, and none of record 0.
TEST(LedgerVerdict, ASamplerOfCopiesMayLeaveRecordsOut) {
  const auto verdict_of = [](std::vector<std::uint32_t> ids, SampleIds kind) {
    return ledger_verdict(
        [&] {
          train::Ledger found = ledger(2);
          found.steps[{0, 0}] = ids;
          return found;
        },
        kind);
  };
  const Json verdict = verdict_of({3, 5}, SampleIds::copies);
  EXPECT_EQ(verdict.at("checked").as_string(), "copies");
  EXPECT_TRUE(is_complete(verdict, 0));
  EXPECT_FALSE(is_complete(verdict_of({3, 3}, SampleIds::copies), 0)) << "the same copy twice";
  EXPECT_FALSE(is_complete(verdict_of({3}, SampleIds::copies), 0)) << "a sample is missing";
  EXPECT_FALSE(is_complete(verdict_of({3, 5}, SampleIds::records), 0));
  EXPECT_EQ(verdict_of({0, 1}, SampleIds::records).at("checked").as_string(), "records");
}

TEST(SampleIds, FollowFromTheSettingsOfTheRun) {
  EXPECT_EQ(sample_ids_of(""), SampleIds::records);
  EXPECT_EQ(sample_ids_of("# balanced-sampler = false  (default)\n# repeated-augment = 1  (default)\n"),
            SampleIds::records);
  EXPECT_EQ(sample_ids_of("balanced-sampler = true\n"), SampleIds::copies);
  EXPECT_EQ(sample_ids_of("# repeated-augment = 3  (recipe imagenet)\n"), SampleIds::copies);
}

}  // namespace
}  // namespace dtrain::board
