#include "compute_options.hpp"

#include <gtest/gtest.h>

namespace dtrain::cli {
namespace {

TEST(ComputeOptions, ARunOnTheCpuSaysThatAGpuIsIdle) {
  const backend::CudaReport usable{.built = true, .driver = "13.0", .libraries = {}, .gpus = {{.name = "NVIDIA H200"}}};
  EXPECT_NE(idle_gpu_note({}, usable).find("NVIDIA H200"), std::string::npos);
  EXPECT_EQ(idle_gpu_note({.device = "cpu"}, usable), "");
  EXPECT_EQ(idle_gpu_note({.gpus = "0"}, usable), "");
  EXPECT_EQ(idle_gpu_note({}, {.problem = "there is no driver"}), "");
}

}  // namespace
}  // namespace dtrain::cli
