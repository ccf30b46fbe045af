#include <gtest/gtest.h>

#include <limits>

#include <dtrain/base/error.hpp>

#include "compute_options.hpp"

namespace dtrain::config {
namespace {

TEST(ComputeOptions, ARunOnTheCpuSaysThatAGpuIsIdle) {
  const backend::CudaReport usable{.built = true, .driver = "13.0", .libraries = {}, .gpus = {{.name = "NVIDIA H200"}}};
  EXPECT_NE(idle_gpu_note({}, usable).find("NVIDIA H200"), std::string::npos);
  EXPECT_EQ(idle_gpu_note({.device = Device::cpu}, usable), "");
  EXPECT_EQ(idle_gpu_note({.gpus = "0"}, usable), "");
  EXPECT_EQ(idle_gpu_note({}, {.problem = "there is no driver"}), "");
}

TEST(ComputeOptions, WhatOnlyAGpuCanDoIsRefusedOnTheCpu) {
  const auto refusal = [](const backend::CudaOptions& cuda) -> std::string {
    try {
      backend_of_worker({.cuda = cuda}, 0);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.plans = {}}), "");
  EXPECT_EQ(refusal({.tf32 = true, .plans = {}}), "--tf32: this option applies to GPUs, and the CPU is selected");
  EXPECT_NE(refusal({.plans_to_time = 2, .plans = {}}).find("--time-plans"), std::string::npos);
  EXPECT_NE(refusal({.fuses = false, .plans = {}}).find("--join-passes 0"), std::string::npos);
  EXPECT_NE(refusal({.own_products = backend::OwnProducts::first, .plans = {}}).find("--own-products first"),
            std::string::npos);
}

struct DeviceAndGpus {
  const char *device, *gpus;
};

TEST(ComputeOptions, TheStrongerOfDeviceAndGpusDecides) {
  const auto settled = [](DeviceAndGpus texts, Source of_device, Source of_gpus) {
    ComputeOptions options;
    OptionSet set;
    bind_device(set, options, kMostGpus);
    Option &device = *set.find("device"), &gpus = *set.find("gpus");
    device.set(texts.device), gpus.set(texts.gpus);
    device.source = of_device, gpus.source = of_gpus;
    set.settle();
    return device.show() + " " + gpus.show();
  };
  constexpr Source kFile = Source::named_config, kFlag = Source::flag;
  EXPECT_EQ(settled({"cpu", "0"}, kFlag, kFile), "cpu ");
  EXPECT_EQ(settled({"cuda", "0"}, kFlag, kFile), "cuda 0");
  EXPECT_EQ(settled({"cuda", ""}, kFile, kFlag), "cpu ");
  EXPECT_EQ(settled({"cuda", "1"}, kFile, kFlag), "cuda 1");
  EXPECT_EQ(settled({"cpu", "1"}, kFile, kFlag), "auto 1");
  EXPECT_EQ(settled({"cpu", "1"}, kFlag, kFlag), "cpu 1") << "that is refused";
  EXPECT_EQ(settled({"auto", ""}, Source::fallback, kFlag), "auto ");
}

TEST(ComputeOptions, AStepHasAsManySamplesAsAnIntHolds) {
  constexpr int most = std::numeric_limits<int>::max();
  EXPECT_EQ((ComputeOptions{.hosts = 3, .batch_size = 100, .accumulate = 4}.samples_per_step()), 1200);
  EXPECT_EQ((ComputeOptions{.batch_size = most}.samples_per_step()), most);
  EXPECT_EQ((ComputeOptions{.batch_size = most / 4, .accumulate = 4}.samples_per_step()), most - 3);
  EXPECT_EQ(largest_shard({.global_batch = most, .logical_shards = 4}), most / 4 + 1);
  for (const ComputeOptions& too_many : {ComputeOptions{.batch_size = 1 << 30, .accumulate = 2},
                                         {.hosts = 3, .batch_size = 1 << 30},
                                         {.hosts = most, .batch_size = most, .accumulate = 65536}}) {
    EXPECT_THROW(too_many.samples_per_step(), UsageError);
  }
  try {
    ComputeOptions{.hosts = 3, .batch_size = 200'000'000, .accumulate = 16}.samples_per_step();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--batch-size 200000000, 3 hosts and --accumulate 16: a step would have more than "
                 "2147483647 samples");
  }
}

}  // namespace
}  // namespace dtrain::config
