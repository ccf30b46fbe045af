#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/run_ends.hpp>

#include "common/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

Checkpoint checkpoint_at(const Cursor& cursor, std::uint64_t samples) {
  Checkpoint checkpoint;
  checkpoint.cursor = cursor;
  checkpoint.job.samples = samples;
  return checkpoint;
}

TEST(RunEnds, GoesOnWhereACheckpointOfTheSameDataStands) {
  const Cursor inside{.epoch = 2, .step = 3, .samples_seen = 120, .position = 30};
  EXPECT_EQ(starting_cursor(checkpoint_at(inside, 45), 45), inside);
  EXPECT_EQ(other_samples(checkpoint_at(inside, 45), 45), "");
}

TEST(RunEnds, CountsTheSamplesOfACheckpointThatDoesNotKnowThem) {
  EXPECT_EQ(starting_cursor(checkpoint_at({.epoch = 2}, 0), 45).samples_seen, 90u);
  EXPECT_EQ(other_samples(checkpoint_at({.epoch = 2}, 0), 45), "");
}

TEST(RunEnds, GoesOnByEpochsOverOtherData) {
  const Checkpoint start = checkpoint_at({.epoch = 2, .samples_seen = 90}, 45);
  EXPECT_EQ(starting_cursor(start, 40).samples_seen, 80u);
  EXPECT_EQ(other_samples(start, 40), "the training data has 40 samples an epoch, not the 45 of the checkpoint");
}

TEST(RunEnds, RefusesOtherDataInTheMiddleOfAnEpoch) {
  for (const std::uint64_t samples : {20u, 40u, 60u}) {
    try {
      starting_cursor(checkpoint_at({.epoch = 2, .step = 3, .samples_seen = 120, .position = 30}, 45), samples);
      ADD_FAILURE() << samples;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("stands at sample 30 of an epoch"), std::string::npos);
      EXPECT_NE(std::string(error.hint()).find("setting 'load-epoch' 2"), std::string::npos);
    }
  }
}

// `why`: message and hint; empty: nothing is thrown.
void expect_records(const Checkpoint& start, const data::RecordOrder& here, const std::string& why) {
  std::string thrown;
  try {
    require_record_order(start, [&] { return here; });
  } catch (const DataError& error) {
    thrown = std::string(error.what()) + " | " + error.hint();
  }
  EXPECT_EQ(thrown, why);
}

TEST(RunEnds, RefusesOtherRecordsInTheMiddleOfAnEpoch) {
  Checkpoint start = checkpoint_at({.epoch = 2, .step = 3, .samples_seen = 120, .position = 30}, 45);
  start.job.records = {.sizes = "5a", .contents = "c0"};
  const auto refused = [](const char* what) {
    return fmt::format(
        "the checkpoint stands at sample 30 of an epoch, and the training data has other records than it was trained "
        "on, or the same in another order: their {} differ | resume with the data that it was trained on, or begin "
        "with these data by setting 'load-epoch' 2",
        what);
  };
  expect_records(start, {.sizes = "5a", .contents = "c0"}, "");
  expect_records(start, {.sizes = "5b", .contents = "c0"}, refused("sizes"));
  expect_records(start, {.sizes = "5a", .contents = "c1"}, refused("labels or pictures"));
  expect_records(start, {.sizes = "5a", .contents = ""}, "");  // behind a URL now
  expect_records(start, {.sizes = "5b", .contents = ""}, refused("sizes"));
  start.job.records.contents = "";
  expect_records(start, {.sizes = "5a", .contents = "c1"}, "");
}

TEST(RunEnds, TakesOtherRecordsWhereTheirOrderDoesNotCount) {
  const data::RecordOrder other{.sizes = "5b", .contents = "c1"};
  for (const Cursor& cursor :
       {Cursor{.epoch = 2, .samples_seen = 90}, Cursor{.epoch = 2, .step = 5, .samples_seen = 135, .position = 45}}) {
    Checkpoint start = checkpoint_at(cursor, 45);
    start.job.records = {.sizes = "5a", .contents = "c0"};
    expect_records(start, other, "");
  }
  const Checkpoint old = checkpoint_at({.epoch = 2, .step = 3, .samples_seen = 120, .position = 30}, 45);
  EXPECT_NO_THROW(require_record_order(old, []() -> data::RecordOrder { throw DataError("nothing is to be read"); }));
}

TEST(RunEnds, SaysWhyThereIsNothingToTrain) {
  TrainerOptions options;
  options.epochs = 5;
  Checkpoint start = checkpoint_at({.epoch = 3}, 45);
  EXPECT_EQ(why_over(start, options), "");
  options.early_stop = 2;
  EXPECT_EQ(why_over(start, options), "");
  start.best = {.accuracy = 0.5, .epoch = 1};
  options.checkpoint_prefix = "m/p";
  EXPECT_EQ(why_over(start, options),
            "the run stopped early after 3 epochs, 2 of them without a better validation: a larger number than setting "
            "'early-stop' 2, or none, trains on; best: m/p-0001");
  options.epochs = 3;
  EXPECT_EQ(why_over(start, options),
            "3 epochs are trained already, and setting 'num-epochs' 3 asks for no more: a larger number trains on");
}

TEST(RunEnds, NamesTheBestCheckpointWhereTheRunChooses) {
  const BestEpoch best{.accuracy = 0.5, .epoch = 2};
  TrainerOptions options;
  options.checkpoint_prefix = "m/p";
  EXPECT_EQ(best_words(best, 4, options), "");
  options.early_stop = 2;
  EXPECT_EQ(best_words({}, 4, options), "");
  EXPECT_EQ(best_words(best, 4, options), "best: m/p-0002");
  options.keep_checkpoints = 1;
  EXPECT_EQ(best_words(best, 4, options), "best: m/p-0002, which was not kept");
  EXPECT_EQ(best_words(best, 2, options), "best: m/p-0002");
  options.keep_best = true;
  EXPECT_EQ(best_words(best, 4, options), "best: m/p-0002");
}

// The run before kept one checkpoint alone, and this one keeps the best.
TEST(RunEnds, NamesNoBestCheckpointThatIsGone) {
  const TemporaryFolder folder;
  const Path prefix = folder / "p";
  const BestEpoch best{.accuracy = 0.5, .epoch = 2};
  TrainerOptions options;
  options.checkpoint_prefix = prefix;
  options.keep_best = true;
  save_checkpoint({prefix, 1}, small_checkpoint(1));
  EXPECT_EQ(best_words(best, 4, options), "best: " + prefix.string() + "-0002") << "it may be written just now";
  save_checkpoint({prefix, 4}, small_checkpoint(4));
  EXPECT_EQ(best_words(best, 4, options), "best: " + prefix.string() + "-0002, which was not kept");
  save_checkpoint({prefix, 2}, small_checkpoint(2));
  EXPECT_EQ(best_words(best, 4, options), "best: " + prefix.string() + "-0002");
}

const ValidationSet kSameSet{.samples = 20, .records = {.sizes = "5a", .contents = "c0"}, .views = 2};

// Where three epochs are complete and the second one was the best.
Checkpoint evaluated_checkpoint() {
  Checkpoint start = checkpoint_at({.epoch = 3}, 45);
  start.best = {.accuracy = 0.5, .epoch = 2, .data = kSameSet};
  return start;
}

TrainerOptions options_to_resume(std::uint32_t early_stop = 0, bool keep_best = false) {
  TrainerOptions options;
  options.epochs = 9;
  options.early_stop = early_stop;
  options.keep_best = keep_best;
  options.keep_checkpoints = keep_best ? 1 : 0;
  options.resumes = true;
  return options;
}

TEST(BestOfTheRun, IsTakenOverOnTheSameData) {
  Checkpoint start = evaluated_checkpoint();
  start.best.since = 1;
  EXPECT_EQ(starting_best(start, &kSameSet, true), start.best);
  EXPECT_EQ(starting_best(start, nullptr, true), start.best) << "nothing new is compared with it";
  ValidationSet moved = kSameSet;
  moved.records.contents = "";  // behind a URL now
  EXPECT_EQ(starting_best(start, &moved, true), start.best);
  start.best.data.reset();
  EXPECT_EQ(starting_best(start, &kSameSet, true), start.best) << "an older dtrain did not write the data";
  EXPECT_TRUE(notes_on_best(start, &kSameSet, options_to_resume(2)).empty());
}

TEST(BestOfTheRun, OnOtherDataIsNotCompared) {
  const Checkpoint start = evaluated_checkpoint();
  ValidationSet other = kSameSet;
  const auto expect_other = [&](const char* what) {
    const BestEpoch best = starting_best(start, &other, true);
    EXPECT_LT(best.accuracy, 0) << what;
    EXPECT_EQ(best.since, 3u) << what;
    EXPECT_EQ(notes_on_best(start, &other, options_to_resume()),
              (std::vector<std::string>{std::string(what) + "; the best epoch is looked for from epoch 3 on"}));
    other = kSameSet;
  };
  other.samples = 19;
  expect_other("the validation data has 19 samples, not the 20 of the checkpoint");
  other.records.sizes = "5b";
  expect_other("the validation data has other records than that of the checkpoint: their sizes differ");
  other.records.contents = "c1";
  expect_other("the validation data has other records than that of the checkpoint: their labels or pictures differ");
  other.views = 6;
  expect_other("setting 'test-views' 6: the checkpoint's validation averaged 2 views");
}

// Of the epochs before, one may be better than all that come.
TEST(BestOfTheRun, ThatTheCheckpointDoesNotNameMayBeAnyEpochBefore) {
  Checkpoint start = evaluated_checkpoint();
  start.best = {};
  EXPECT_EQ(starting_best(start, &kSameSet, true).since, 3u);
  EXPECT_EQ(starting_best(start, &kSameSet, false).since, 0u) << "another run begins";
  EXPECT_EQ(notes_on_best(start, &kSameSet, options_to_resume(0, true)),
            (std::vector<std::string>{"the checkpoint does not say which epoch was the best one; the best epoch is "
                                      "looked for from epoch 3 on, and the checkpoints of the epochs before stay"}));
  EXPECT_TRUE(notes_on_best(start, &kSameSet, options_to_resume()).empty()) << "the run does not choose";
}

TEST(BestOfTheRun, IsOpenWhileAnEvaluationIsDue) {
  Checkpoint start = evaluated_checkpoint();
  start.best.is_due = true;
  const TrainerOptions options = options_to_resume(1);
  EXPECT_FALSE(stops_early(start.cursor, start.best, options));
  EXPECT_EQ(why_over(start, options), "");
  EXPECT_TRUE(starting_best(start, &kSameSet, true).is_due);
  EXPECT_FALSE(starting_best(start, nullptr, true).is_due) << "there are no data to do it with";
  EXPECT_EQ(notes_on_best(start, &kSameSet, options).size(), 1u);
  start.best.data->samples = 7;
  EXPECT_EQ(starting_best(start, &kSameSet, true).since, 2u) << "the last epoch is compared yet";

  EvaluationReport third;
  third.epoch = 2;
  third.accuracy = 0.25;
  const BestEpoch worse = after_evaluation(start.best, third);
  EXPECT_FALSE(worse.is_due);
  EXPECT_EQ(worse.epoch, 2u);
  EXPECT_TRUE(stops_early(start.cursor, worse, options));
  start.best.since = 1;
  third.accuracy = 0.75;
  const BestEpoch better = after_evaluation(start.best, third);
  EXPECT_EQ(better.epoch, 3u);
  EXPECT_EQ(better.accuracy, 0.75);
  EXPECT_EQ(better.since, 1u);
}

}  // namespace
}  // namespace dtrain::train
