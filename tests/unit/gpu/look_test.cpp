// What gpu/look.cpp tells of a machine.
#include <gtest/gtest.h>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/error.hpp>

#include "common/trace.hpp"
#include "helpers/cuda_runtime/runtime.hpp"

namespace dtrain::testing {
namespace {

TEST(GpuLook, TellsTheDriverTheLibraryAndEachGpu) {
  const backend::CudaReport report = backend::look_for_cuda();
  EXPECT_TRUE(report.built);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.driver, "13.0");
  EXPECT_EQ(report.libraries.at(0).version, "9.0.0");
  ASSERT_EQ(report.gpus.size(), 2u);
  EXPECT_EQ(report.gpus[1].index, 1);
  EXPECT_EQ(report.gpus[1].capability, "9.0");
  EXPECT_GT(report.gpus[1].memory, 0u);
  EXPECT_THROW(backend::make_cuda_backend(2), UsageError);
}

TEST(GpuLook, RefusesGpusThatItsKernelsAreNotCompiledFor) {
  cuda_runtime::start({.capability = 7});
  EXPECT_NE(backend::look_for_cuda().problem.find("compute capability 7.0"), std::string::npos);
  EXPECT_THROW(backend::make_cuda_backend(0), UsageError);
  cuda_runtime::start({});
}

TEST(GpuLook, TrainsOnAGpuBesideOneThatDoesNotAnswer) {
  cuda_runtime::fail_next("cudaGetDeviceProperties", cudaErrorDevicesUnavailable);
  const auto gpu = backend::make_cuda_backend(1);
  const Problem problem = layer_problems().front();
  EXPECT_EQ(compare_backends(*gpu, *backend::make_reference_backend(), problem), "");
}

}  // namespace
}  // namespace dtrain::testing
