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

TEST(RunEnds, FollowTheBestWhereTheRunChoosesOrTheCheckpointNamesOne) {
  TrainerOptions options;
  EXPECT_FALSE(follows_best({}, options));
  EXPECT_TRUE(follows_best({.accuracy = 0, .epoch = 1}, options));
  options.keep_best = true;
  EXPECT_TRUE(follows_best({}, options));
}

}  // namespace
}  // namespace dtrain::train
