#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "spec/checkpoint_agreement.hpp"

namespace dtrain::job {
namespace {

// Options of a run that is resumed, with those that the user chose for it.
struct ResumedRun {
  config::TrainOptions options;
  config::OptionSet set;
  ResumedRun() {
    bind(set, options);
    options.resume = true;
  }
  void choose(const char* name, const std::string& text) {
    set.find(name)->set(text);
    set.find(name)->source = config::Source::flag;
  }
};

train::Checkpoint checkpoint_inside(std::uint64_t position) {
  train::Checkpoint checkpoint;
  checkpoint.cursor.position = position;
  checkpoint.job.order = {.shuffle_block = 64, .balanced = false, .repeats = 2};
  return checkpoint;
}

TEST(SampleOrder, TakesTheOrderOfTheSamplesInsideAnEpoch) {
  ResumedRun run;
  agree_with_checkpoint(checkpoint_inside(100), run.set, run.options);
  EXPECT_EQ(run.options.data.shuffle_block, 64);
  EXPECT_EQ(run.options.data.repeated_augment, 2);
}

TEST(SampleOrder, GoesOnWithTheOrderOfTheSamplesInTheNextEpoch) {
  ResumedRun run;
  train::Checkpoint checkpoint = checkpoint_inside(0);
  checkpoint.job.order->balanced = true;
  agree_with_checkpoint(checkpoint, run.set, run.options);
  EXPECT_EQ(run.options.data.shuffle_block, 64);
  EXPECT_EQ(run.options.data.repeated_augment, 2);
  EXPECT_TRUE(run.options.data.balanced_sampler);
  ResumedRun another;
  another.choose("repeated-augment", "1");
  agree_with_checkpoint(checkpoint, another.set, another.options);
  EXPECT_EQ(another.options.data.repeated_augment, 1);
  EXPECT_EQ(another.options.data.shuffle_block, 64);
}

TEST(SampleOrder, RefusesAnotherOrderOfTheSamplesInsideAnEpoch) {
  for (const auto& [name, text] :
       {std::pair("shuffle-block", "32"), {"balanced-sampler", "true"}, {"repeated-augment", "1"}}) {
    ResumedRun run;
    run.choose(name, text);
    EXPECT_THROW(agree_with_checkpoint(checkpoint_inside(100), run.set, run.options), UsageError) << name;
    ResumedRun at_end;
    at_end.choose(name, text);
    EXPECT_NO_THROW(agree_with_checkpoint(checkpoint_inside(0), at_end.set, at_end.options)) << name;
  }
}

TEST(SampleOrder, TakesACheckpointThatDoesNotSayTheOrderOfItsSamples) {
  train::Checkpoint old = checkpoint_inside(100);
  old.job.order.reset();
  ResumedRun run;
  run.choose("shuffle-block", "32");
  agree_with_checkpoint(old, run.set, run.options);
  EXPECT_EQ(run.options.data.shuffle_block, 32);
}

}  // namespace
}  // namespace dtrain::job
