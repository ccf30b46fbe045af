#include <gtest/gtest.h>

#include "shard_choice.hpp"

namespace dtrain::config {
namespace {

TEST(ShardChoice, WithoutElasticIsOneForEachWorkerRoundedUp) {
  EXPECT_EQ(choose_shards({.workers = 1, .max_workers = 0, .global_batch = 128}), 1);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 0, .global_batch = 128}), 2);
  EXPECT_EQ(choose_shards({.workers = 3, .max_workers = 0, .global_batch = 128}), 4);
  EXPECT_EQ(choose_shards({.workers = 8, .max_workers = 0, .global_batch = 16}), 8);
}

TEST(ShardChoice, ElasticIsFourForEachOfTheMostWorkers) {
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .global_batch = 4096}), 32);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 9, .global_batch = 4096}), 64);
}

TEST(ShardChoice, ElasticKeepsSixteenSamplesInAShard) {
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .global_batch = 256}), 16);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .global_batch = 255}), 8);
}

TEST(ShardChoice, ElasticHasAShardForEveryWorkerOfTheStart) {
  EXPECT_EQ(choose_shards({.workers = 6, .max_workers = 12, .global_batch = 32}), 8);
}

TEST(ShardChoice, EachWorkerHasAShardForEachBatchThatItAccumulates) {
  EXPECT_EQ(choose_shards({.workers = 1, .accumulate = 4, .global_batch = 128}), 4);
  EXPECT_EQ(choose_shards({.workers = 3, .accumulate = 2, .global_batch = 128}), 8);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .accumulate = 16, .global_batch = 256}), 32);
  EXPECT_EQ(choose_shards({.workers = 2, .max_workers = 8, .accumulate = 2, .global_batch = 4096}), 32);
}

TEST(ShardChoice, TheMostWorkersAreTwiceThoseOfTheStartAtLeastEight) {
  EXPECT_EQ(default_max_workers(1), 8);
  EXPECT_EQ(default_max_workers(4), 8);
  EXPECT_EQ(default_max_workers(5), 10);
}

}  // namespace
}  // namespace dtrain::config
