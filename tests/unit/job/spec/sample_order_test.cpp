#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "common/temporary_folder.hpp"
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

// Two records of one size, whose labels are 0 and 1 or the other way round.
void write_two(const Path& rec, bool in_other_order) {
  data::RecordWriter writer(rec);
  for (const bool first : {true, false}) writer.add(0, first == in_other_order ? 1.0f : 0.0f, bytes_of("x"));
  writer.finish();
}

TEST(SampleOrder, RefusesRecordsThatWerePackedAgainInsideAnEpoch) {
  TemporaryFolder folder;
  const Path rec = folder.path() / "p.rec";
  write_two(rec, false);
  train::Checkpoint checkpoint = checkpoint_inside(1);
  checkpoint.cursor.step = 1;
  checkpoint.job.samples = 2;
  checkpoint.job.records = data::order_of_records(data::RecordSet({rec}), 2);
  EXPECT_NO_THROW(agree_on_records(checkpoint, folder.path() / "p", 0));
  write_two(rec, true);
  EXPECT_THROW(agree_on_records(checkpoint, folder.path() / "p", 0), DataError);
  EXPECT_THROW(agree_on_records(checkpoint, folder.path() / "p", 1), DataError) << "one record an epoch";
  train::Checkpoint old = checkpoint;
  old.job.records = {};
  EXPECT_NO_THROW(agree_on_records(old, folder.path() / "p", 0));
  checkpoint.cursor = {.epoch = 1};
  EXPECT_NO_THROW(agree_on_records(checkpoint, folder.path() / "p", 0));
}

TEST(ValidationOfTheRun, ThatIsAnotherForgetsTheBestEpoch) {
  TemporaryFolder folder;
  const Path rec = folder.path() / "v.rec";
  write_two(rec, false);
  const train::ValidationSet first{
      .samples = 2, .records = data::order_of_records(data::RecordSet({rec}), 2), .views = 1};
  const auto best_with = [&](int views, const std::optional<train::ValidationSet>& saved) {
    train::Checkpoint checkpoint;
    checkpoint.cursor = {.epoch = 4};
    checkpoint.best = {.accuracy = 0.5, .epoch = 3, .data = saved};
    agree_on_validation(checkpoint, folder.path() / "v", views, {});
    return checkpoint.best.accuracy;
  };
  EXPECT_EQ(best_with(1, first), 0.5);
  EXPECT_LT(best_with(2, first), 0);
  write_two(rec, true);
  EXPECT_LT(best_with(1, first), 0);
  EXPECT_EQ(best_with(1, std::nullopt), 0.5) << "an older dtrain did not write it";
}

}  // namespace
}  // namespace dtrain::job
