#include "bench_run.hpp"

#include <gtest/gtest.h>

#include "train/tiny_training.hpp"

namespace dtrain::bench {
namespace {

// Epochs of four steps of 10 samples and one of 5.
class BenchRun : public train::TinyTraining {
 protected:
  // The state in which a measurement ended, of measured_ steps.
  backend::ModelState state_after(const BenchLength& length) {
    const auto backend = make_backend();
    const auto executable = compile(*backend);
    data::Loader training = loader();
    measured_ = static_cast<int>(time_steps(network(), *executable, training, options_, length).seconds.size());
    return executable->state();
  }
  int measured_ = 0;
};

TEST_F(BenchRun, MeasuresWholeStepsOnly) {
  const backend::ModelState into_second_epoch = state_after({.warmup = 5, .steps = 1});
  EXPECT_EQ(measured_, 1);
  train::expect_same_bits(state_after({.warmup = 0, .steps = 5}), into_second_epoch);
}

TEST_F(BenchRun, MeasuresStepsOfAllRecordsWhereThereAreFewerThanABatch) {
  options_.global_batch = train::kTinySamples + 1;
  EXPECT_EQ(state_after({.warmup = 1, .steps = 2}).updates, state_after({.warmup = 2, .steps = 1}).updates);
}

TEST_F(BenchRun, EndsBeforeItsTimeAfterEnoughSteps) {
  state_after({.warmup = 1, .seconds = 3600, .enough_steps = 3});
  EXPECT_EQ(measured_, 3);
  state_after({.warmup = 1, .steps = 5, .enough_steps = 3});
  EXPECT_EQ(measured_, 5);
}

}  // namespace
}  // namespace dtrain::bench
