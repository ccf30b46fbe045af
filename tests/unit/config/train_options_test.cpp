#include "train_options.hpp"

#include <gtest/gtest.h>

namespace dtrain::config {
namespace {

// As a backend on a GPU has its batches.
class WishesBytes final : public backend::Backend {
 public:
  std::string name() const override { return "bytes"; }
  std::string description() const override { return "bytes"; }
  const char* why_not(backend::DType) const override { return nullptr; }
  backend::DType fastest_dtype() const override { return backend::DType::float32; }
  bool same_bits() const override { return true; }
  backend::BatchWish batches() const override { return {.as_bytes = true, .memory = {}}; }
  std::unique_ptr<backend::Executable> compile(const nn::Graph&, const backend::CompileOptions&) const override {
    return nullptr;
  }
};

TrainOptions of_shards(int shards) {
  TrainOptions options;
  options.compute.logical_shards = shards;
  options.compute.batch_size = 64;
  return options;
}

backend::CompileOptions compiled(const TrainOptions& options) {
  return compile_options(options, WishesBytes(), backend::DType::float32);
}

TEST(TrainOptions, AProcessAlonePlansForAllShardsAndTheirSubtrees) {
  const backend::CompileOptions compile = compiled(of_shards(8));
  EXPECT_EQ(compile.max_samples, 8);
  EXPECT_EQ(compile.shards, 8);
  EXPECT_EQ(compile.waiting_sums, 3);
  EXPECT_TRUE(compile.batches_as_bytes);
}

TEST(TrainOptions, WorkersOnGpusPlanForTheirOwnShardsAndTheExchange) {
  TrainOptions options = of_shards(8);
  options.job.hosts = options.compute.hosts = 2;
  options.compute.gpus = "0,1";
  EXPECT_EQ(compiled(options).shards, 2);
  EXPECT_EQ(compiled(options).waiting_sums, 0) << "over TCP they are added up on the host";
  options.job.transport = comm::Transport::nccl;
  EXPECT_EQ(compiled(options).waiting_sums, comm::contributions_kept_for_nccl(8, 4, false));
  options.job.gradient_dtype = backend::DType::bfloat16;
  EXPECT_GT(compiled(options).waiting_sums, comm::contributions_kept_for_nccl(8, 4, false));
}

// A GPU that joins later holds less than those of the start.
TEST(TrainOptions, AnElasticJobPlansForTheLeastThatAWorkerHoldsWhileItGrows) {
  TrainOptions options = of_shards(16);
  options.job.elastic = true;
  options.job.transport = comm::Transport::nccl;
  options.compute.hosts = 2;
  options.job.max_workers = 16;
  EXPECT_EQ(compiled(options).shards, 1);
  EXPECT_EQ(compiled(options).waiting_sums, comm::contributions_kept_for_nccl(16, 16, false));
  options.job.max_workers = 3;  // whose uneven shares have more pieces to exchange than those of two workers
  EXPECT_EQ(compiled(options).shards, 6);
  EXPECT_EQ(compiled(options).waiting_sums, comm::contributions_kept_for_nccl(16, 2, false));
  options.job.max_workers = 0;
  EXPECT_EQ(compiled(options).shards, 8);
}

TEST(TrainOptions, WhatIsMixedOrErasedIsMadeOfFloats) {
  TrainOptions erased = of_shards(1), mixed = of_shards(1);
  erased.data.augment.random_erasing = 0.5f;
  mixed.mix.mixup = 0.2f;
  EXPECT_FALSE(compiled(erased).batches_as_bytes);
  EXPECT_FALSE(compiled(mixed).batches_as_bytes);
}

}  // namespace
}  // namespace dtrain::config
