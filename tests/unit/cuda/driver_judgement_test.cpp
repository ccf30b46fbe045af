#include "driver_judgement.hpp"

#include <gtest/gtest.h>

namespace dtrain::backend::cuda {
namespace {

using Count = DriverAnswer::Count;

CudaReport judged(const DriverAnswer& answer, std::vector<CudaGpu> gpus = {}) {
  CudaReport report{.built = true, .gpus = std::move(gpus)};
  judge_driver(report, answer);
  return report;
}

TEST(CudaDriverJudgement, FindsNothingWrongWithADriverThatShowsGpus) {
  const CudaReport report = judged({.driver = 13020, .needed = 13000, .count = Count::done}, {{.name = "NVIDIA H200"}});
  EXPECT_EQ(report.driver, "13.2");
  EXPECT_EQ(report.problem + report.hint, "");
}

TEST(CudaDriverJudgement, TellsAMachineWithoutADriverFromOneWithAnOldOne) {
  const CudaReport none = judged({.driver = 0, .needed = 13000, .error = "insufficient"});
  EXPECT_EQ(none.driver, "");
  EXPECT_NE(none.problem.find("no NVIDIA driver"), std::string::npos) << none.problem;
  const CudaReport old = judged({.driver = 12080, .needed = 13020, .error = "insufficient"});
  EXPECT_EQ(old.driver, "12.8");
  EXPECT_EQ(old.problem, "the NVIDIA driver knows CUDA 12.8 and dtrain needs CUDA 13");
  EXPECT_EQ(judged({.driver = 13000, .needed = 13020, .error = "unknown error"}).problem,
            "no GPU can be used: unknown error");
}

// The driver answers so where the variable hides all GPUs, and it is the variable that the user can change.
TEST(CudaDriverJudgement, SaysWhichVariableHidesTheGpus) {
  for (const char* visible : {"", "-1"}) {
    const CudaReport report =
        judged({.driver = 13000, .needed = 13000, .count = Count::no_gpu, .error = "none", .visible = visible});
    EXPECT_EQ(report.problem, std::string("the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is '") + visible + "'");
    EXPECT_NE(report.hint.find("unset it"), std::string::npos);
  }
  const CudaReport report = judged({.driver = 13000, .needed = 13000, .count = Count::no_gpu});
  EXPECT_EQ(report.problem, "the NVIDIA driver shows no GPU");
  EXPECT_NE(report.hint.find("nvidia-smi"), std::string::npos);
}

TEST(CudaDriverJudgement, LeavesNoMachineWithoutGpusUnjudged) {
  EXPECT_NE(judged({.driver = 13000, .needed = 13000, .count = Count::done}).problem, "");
}

}  // namespace
}  // namespace dtrain::backend::cuda
