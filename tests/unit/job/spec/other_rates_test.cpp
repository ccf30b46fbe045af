// Of which options a resumed run says that the first run had other ones.
#include <gtest/gtest.h>

#include "spec/train_start.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

// The rule of an optimizer cannot be compared with another's; the schedule, which begins at its own default, can.
TEST(OtherRates, AreThoseOfTheScheduleBesideAnotherOptimizer) {
  config::TrainOptions options;
  config::OptionSet set;
  bind(set, options);
  options.resume = true;
  options.epochs = 1;  // as the checkpoint's schedule
  options.schedule.base = 0.05;
  train::Checkpoint start = train::small_checkpoint();
  start.job.schedule = options.schedule;
  start.job.schedule.total_epochs = 1;
  start.job.schedule.base = 0.001;
  start.job.optimizer = options.optimizer;
  start.job.optimizer.kind = nn::OptimizerKind::adam;
  start.job.optimizer.weight_decay = 0.3f;
  set.find("optimizer")->set("adamw");
  set.find("optimizer")->source = config::Source::flag;
  EXPECT_EQ(other_rates(start, set, options), (std::vector<OtherRate>{{"lr", "0.001", "0.05"}}));
}

}  // namespace
}  // namespace dtrain::job
