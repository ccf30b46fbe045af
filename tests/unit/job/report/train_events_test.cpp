#include "report/train_events.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"
#include "report/run_watch.hpp"
#include "report/steps_file.hpp"

namespace dtrain::job {
namespace {

using Numbers = std::vector<std::uint64_t>;

constexpr const char* kRestart =
    "\x3a\x02\x08\x01";  // session_log (7) {status (1): START} of TensorBoard's event.proto

// The steps of the events that hold these bytes, oldest first: field 2 of an event, behind its time.
Numbers steps_with(const Path& folder, std::string_view bytes) {
  std::vector<Path> files{std::filesystem::directory_iterator(folder), {}};
  std::ranges::sort(files);
  Numbers steps;
  for (const Path& file : files) {
    const std::string content = read_file(file);
    constexpr std::size_t kHead = 12, kTime = 9, kFoot = 4;
    for (std::size_t at = 0; at < content.size();) {
      std::uint64_t length = 0, step = 0;
      content.copy(reinterpret_cast<char*>(&length), sizeof(length), at);
      const std::string event = content.substr(at + kHead, length);
      at += kHead + length + kFoot;
      if (event.find(bytes) == event.npos) continue;
      for (std::size_t i = 0; event[kTime] == 0x10; ++i) {
        const auto byte = static_cast<unsigned char>(event[kTime + 1 + i]);
        step |= std::uint64_t{byte & 0x7fu} << (7 * i);
        if (byte < 0x80) break;
      }
      steps.push_back(step);
    }
  }
  return steps;
}

train::StepReport step_of(std::uint32_t epoch, std::uint64_t step, std::uint64_t steps) {
  train::StepReport report;
  report.epoch = epoch;
  report.step = step;
  report.steps = steps;
  report.samples = 10;
  return report;
}

void tell_epoch(train::Observer& observer, std::uint32_t epoch, std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) observer.on_step(step_of(epoch, step, steps));
  train::EpochReport trained;
  trained.epoch = epoch;
  observer.on_epoch(trained);
  train::EvaluationReport evaluation;
  evaluation.epoch = epoch;
  observer.on_evaluation(evaluation);
}

TEST(BoardEvents, HaveStepsThatGoOnWhereEpochsGetShorter) {
  const TemporaryFolder folder;
  const config::DataOptions data;
  RecordingReporter reporter;
  {
    BoardEvents events(folder.path(), data, false, reporter);
    tell_epoch(events, 0, 3);
    events.on_step(step_of(1, 0, 3));
    events.on_step(step_of(1, 1, 2));  // a worker joined
    tell_epoch(events, 2, 1);
  }
  EXPECT_EQ(steps_with(folder.path(), "train/loss"), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(steps_with(folder.path(), "validation/loss"), (Numbers{3, 6}));
  EXPECT_EQ(steps_with(folder.path(), "epoch/loss"), (Numbers{3, 6}));
}

// A run whose epochs got shorter, in its records; then another process goes on with it.
class ResumedRun : public ::testing::Test {
 protected:
  ResumedRun() {
    run_.options.tensorboard = folder_ / "tb";
    run_.options.job.batch = train::ElasticBatch::per_worker;
    run_.options.resume = true;
    StepsFile file(records_);
    file.begin(false);
    tell_epoch(file, 0, 30);
    tell_epoch(file, 1, 20);
    tell_epoch(file, 2, 15);
    file.end();
  }
  // `reports`: of epochs and steps.
  Numbers steps_of(const std::vector<train::StepReport>& reports) {
    {
      RunWatch watch(reporter_, run_, records_);
      for (const train::StepReport& report : reports) watch.observers().on_step(report);
    }
    return steps_with(folder_ / "tb", "train/loss");
  }

  const TemporaryFolder folder_;
  const Path records_ = folder_ / "steps.jsonl";
  RecordingReporter reporter_;
  TrainRun run_;
};

TEST_F(ResumedRun, GoesOnWithTheNumbersOfItsRecords) {
  EXPECT_EQ(steps_of({step_of(2, 7, 12), step_of(3, 0, 15)}), (Numbers{58, 63}));
  EXPECT_EQ(steps_with(folder_ / "tb", kRestart), Numbers{58});
}

TEST_F(ResumedRun, PassesOverWhatIsNoLineOfItsRecords) {
  write_file_atomic(records_, "torn\n" + read_file(records_) + "{\"epoch\":3,\"step\":4,\"steps\":5\n{\"epoch\":9");
  EXPECT_EQ(steps_of({step_of(3, 0, 15)}), Numbers{66});
}

TEST_F(ResumedRun, WithoutRecordsCountsTheUpdatesOfItsCheckpoint) {
  std::filesystem::remove(records_);
  run_.start.emplace();
  run_.start->cursor.epoch = 2;
  run_.start->cursor.step = 7;
  run_.start->state.updates = 57;
  EXPECT_EQ(steps_of({step_of(2, 7, 12), step_of(3, 0, 15)}), (Numbers{58, 63}));
}

// The process before ended between the checkpoint of an epoch and its evaluation.
TEST_F(ResumedRun, MakesUpForAnEvaluationWhereItsCheckpointStands) {
  run_.options.job.batch = train::ElasticBatch::fixed_global;
  run_.start.emplace();
  run_.start->cursor.epoch = 2;
  run_.start->state.updates = 50;
  {
    RunWatch watch(reporter_, run_);
    train::EvaluationReport evaluation;
    evaluation.epoch = 1;
    watch.observers().on_evaluation(evaluation);
    watch.observers().on_step(step_of(2, 0, 25));
  }
  EXPECT_EQ(steps_with(folder_ / "tb", "validation/loss"), Numbers{50});
  EXPECT_EQ(steps_with(folder_ / "tb", "train/loss"), Numbers{51});
}

TEST_F(ResumedRun, OfAFixedBatchHasEquallyManyStepsAnEpoch) {
  run_.options.job.batch = train::ElasticBatch::fixed_global;
  EXPECT_EQ(steps_of({step_of(2, 7, 12), step_of(3, 0, 12)}), (Numbers{32, 37}));
}

}  // namespace
}  // namespace dtrain::job
