#include "config/exchange/local_steps_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "config/shard_choice.hpp"

namespace dtrain::config {
namespace {

using train::OuterOptimizer;

class LocalStepsOptions : public testing::Test {
 protected:
  LocalStepsOptions() { bind_local_steps(set_, options_.local); }
  // What check_local_steps() says against these options; empty: nothing.
  std::string refusal(backend::DType dtype = backend::DType::float32) const {
    try {
      check_local_steps(options_, dtype, set_);
      return {};
    } catch (const UsageError& error) {
      EXPECT_NE(error.hint(), "") << error.what();
      return error.what();
    }
  }

  TrainOptions options_;
  OptionSet set_;
};

TEST_F(LocalStepsOptions, WithoutThemNothingIsRefused) {
  options_.job.batch = train::ElasticBatch::per_worker;
  options_.compute.accumulate = 4;
  options_.optimizer.average = 0.9f;
  EXPECT_EQ(refusal(backend::DType::float16), "");
}

TEST_F(LocalStepsOptions, EachConflictHasItsSentence) {
  options_.local.steps = 50;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(backend::DType::bfloat16), "");
  EXPECT_EQ(refusal(backend::DType::float16),
            "--local-steps 50 with --dtype float16: each replica would need a loss scale of its own");
  const TrainOptions good = options_;
  options_.job.batch = train::ElasticBatch::per_worker;
  EXPECT_EQ(refusal(), "--local-steps 50 with --elastic-batch per-worker: the number of replicas is fixed");
  options_ = good;
  options_.compute.accumulate = 2;
  EXPECT_TRUE(refusal().starts_with("--local-steps 50 with --accumulate: ")) << refusal();
  options_ = good;
  options_.optimizer.average = 0.9f;
  EXPECT_TRUE(refusal().starts_with("--local-steps 50 with --ema: ")) << refusal();
  options_ = good;
  options_.compute.global_batch = 1 << 30;
  EXPECT_TRUE(refusal().starts_with("--local-steps 50 with so large a batch: ")) << refusal();
}

TEST_F(LocalStepsOptions, AnExchangeOfHStepsHasTheirSamples) {
  options_.compute.batch_size = 16;
  options_.compute.hosts = 3;
  options_.local.steps = 10;
  EXPECT_EQ(samples_between_exchanges(options_), 480);
  EXPECT_EQ(trainer_options(options_, backend::DType::float32).global_batch, 480);
  EXPECT_EQ(largest_shard(options_.compute), 48) << "what is computed at once is a batch of one step";
}

TEST_F(LocalStepsOptions, TheLineNamesWhatIsUsed) {
  EXPECT_EQ(local_steps_line({.steps = 5}, 4),
            "4 replicas take 5 steps between two exchanges; outer optimizer nesterov, rate 0.7, momentum 0.9");
  EXPECT_EQ(local_steps_line({.steps = 5, .outer = OuterOptimizer::sgd, .rate = 1}, 1),
            "1 replica takes 5 steps between two exchanges; outer optimizer sgd, rate 1");
  EXPECT_EQ(local_steps_line({.steps = 5, .outer = OuterOptimizer::average}, 2),
            "2 replicas take 5 steps between two exchanges; outer optimizer average");
}

TEST(ShardChoiceOfReplicas, IsOneForEachOfTheMostWorkers) {
  EXPECT_EQ(choose_shards({.workers = 3, .replicas = true, .global_batch = 300}), 4);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .replicas = true, .global_batch = 512}), 8);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .global_batch = 512}), 32);
}

}  // namespace
}  // namespace dtrain::config
