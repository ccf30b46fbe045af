#include "bench_run.hpp"

#include <gtest/gtest.h>

#include "train/tiny_training.hpp"

namespace dtrain::bench {
namespace {

// Epochs of four steps of 10 samples and one of 5.
class BenchRun : public train::TinyTraining {
 protected:
  // The state in which the measurement of so many steps ended.
  backend::ModelState state_after(const BenchLength& length) {
    const auto backend = make_backend();
    const auto executable = compile(*backend);
    data::Loader training = loader();
    const StepTimes times = time_steps(network(), *executable, training, options_, length);
    EXPECT_EQ(times.seconds.size(), static_cast<std::size_t>(length.steps));
    return executable->state();
  }
};

TEST_F(BenchRun, MeasuresWholeStepsOnly) {
  const backend::ModelState into_second_epoch = state_after({.warmup = 5, .steps = 1});
  train::expect_same_bits(state_after({.warmup = 0, .steps = 5}), into_second_epoch);
}

TEST_F(BenchRun, MeasuresStepsOfAllRecordsWhereThereAreFewerThanABatch) {
  options_.global_batch = train::kTinySamples + 1;
  EXPECT_EQ(state_after({.warmup = 1, .steps = 2}).updates, state_after({.warmup = 2, .steps = 1}).updates);
}

}  // namespace
}  // namespace dtrain::bench
