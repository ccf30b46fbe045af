#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dtrain::config
