// Each test begins on a machine that was just started, may break no rule of CUDA's and must give back what it took.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "helpers/cuda_runtime/runtime.hpp"

namespace dtrain::testing {
namespace {

class Watch final : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { cuda_runtime::start({}); }
  void OnTestEnd(const ::testing::TestInfo&) override {
    cuda_runtime::finish_all();
    for (const std::string& finding : cuda_runtime::take_findings()) ADD_FAILURE() << finding;
    for (const std::string& left : cuda_runtime::leftovers()) ADD_FAILURE() << "not given back: " << left;
  }
};

// cuDNN is looked for where people name it first.
const bool kWatches = [] {
  ::setenv("DTRAIN_CUDA_PATH", std::filesystem::path(DTRAIN_CUDNN_STANDIN).parent_path().c_str(), 1);
  ::testing::UnitTest::GetInstance()->listeners().Append(new Watch);
  return true;
}();

}  // namespace
}  // namespace dtrain::testing
