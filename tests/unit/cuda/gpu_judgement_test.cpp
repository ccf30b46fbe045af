#include <gtest/gtest.h>

#include <dtrain/backend/cuda.hpp>

namespace dtrain::backend {
namespace {

CudaReport machine(std::vector<CudaGpu> gpus) {
  CudaReport report{.built = true, .driver = "13.0", .gpus = std::move(gpus)};
  judge_gpus(report);
  return report;
}

TEST(GpuJudgement, RefusesAMachineWhoseGpusAreAllTooOld) {
  const CudaReport report = machine({{.index = 0, .name = "Tesla V100-SXM2-16GB", .capability = "7.0"}});
  EXPECT_EQ(report.problem, "GPU 0, Tesla V100-SXM2-16GB, has compute capability 7.0, and dtrain needs 8.0 or newer");
  EXPECT_NE(report.hint.find("A10G"), std::string::npos);
  EXPECT_NE(machine({{.name = "Tesla T4", .capability = "7.5"}}).problem, "");
}

TEST(GpuJudgement, RefusesOneGpuBesideOthers) {
  const CudaReport report = machine({{.index = 0, .name = "Tesla T4", .capability = "7.5"},
                                     {.index = 1, .name = "NVIDIA B200", .capability = "10.0"},
                                     {.index = 2, .name = "?"}});
  EXPECT_EQ(report.problem, "");
  EXPECT_NE(report.gpus[0].problem, "");
  EXPECT_EQ(report.gpus[1].problem, "");
  EXPECT_EQ(report.gpus[2].problem, "") << "what is wrong with it shows when it is opened";
}

TEST(GpuJudgement, KeepsAnEarlierProblem) {
  CudaReport report{.built = true, .gpus = {{.name = "Tesla T4", .capability = "7.5"}}, .problem = "no driver"};
  judge_gpus(report);
  EXPECT_EQ(report.problem, "no driver");
}

}  // namespace
}  // namespace dtrain::backend
