#include "description.hpp"

#include <gtest/gtest.h>

#include <set>

#include "common/temporary_folder.hpp"

namespace dtrain::backend::cuda {
namespace {

const CudaGpu kGpu{.index = 1, .name = "NVIDIA H100 80GB HBM3", .capability = "9.0"};
const CudaReport kReport{.built = true,
                         .driver = "13.0",
                         .libraries = {{.name = "cuDNN", .file = {}, .version = "9.19.0", .problem = {}, .hint = {}}},
                         .gpus = {},
                         .problem = {},
                         .hint = {}};
const std::string kPlain = "NVIDIA H100 80GB HBM3 (capability 9.0, driver for CUDA 13.0), cuDNN 9.19.0";

CudaOptions with(bool CudaOptions::*option, bool value) {
  CudaOptions options;
  options.*option = value;
  return options;
}

TEST(CudaDescription, NamesTheGpuAndItsVersions) { EXPECT_EQ(describe(kGpu, kReport, {}, {}), kPlain); }

// Workers of different descriptions refuse each other.
TEST(CudaDescription, DiffersForEachOptionThatDecidesOnBits) {
  PlanStore measured;
  measured.keep("work", "67");
  const std::set<std::string> texts{describe(kGpu, kReport, {}, {}),
                                    describe(kGpu, kReport, with(&CudaOptions::deterministic, false), {}),
                                    describe(kGpu, kReport, with(&CudaOptions::tf32, true), {}),
                                    describe(kGpu, kReport, with(&CudaOptions::fuses, false), {}),
                                    describe(kGpu, kReport, {}, measured),
                                    describe(kGpu, kReport, {.own_products = OwnProducts::first, .plans = {}}, {}),
                                    describe(kGpu, kReport, {.own_products = OwnProducts::never, .plans = {}}, {})};
  EXPECT_EQ(texts.size(), 7);
}

TEST(CudaDescription, SaysThatBitsMayDiffer) {
  EXPECT_EQ(describe(kGpu, kReport, with(&CudaOptions::deterministic, false), {}), kPlain + ", not deterministic");
}

TEST(CudaDescription, KeepsPlansThatGiveOtherBitsApart) {
  const TemporaryFolder folder;
  const auto store = [&](bool deterministic) {
    return PlanStore(folder.path(), maker_of_plans(kGpu, kReport, with(&CudaOptions::deterministic, deterministic)));
  };
  store(false).keep("work", "25");
  EXPECT_EQ(store(true).find("work"), "");
  EXPECT_EQ(store(true).description(), "");
  store(true).keep("work", "74");
  EXPECT_EQ(store(true).find("work"), "74");
  EXPECT_EQ(store(false).find("work"), "25");
}

TEST(CudaDescription, KeepsPlansApartByGpuAndVersion) {
  CudaGpu other = kGpu;
  other.name = "NVIDIA H200";
  CudaReport newer = kReport;
  newer.libraries.front().version = "9.20.0";
  EXPECT_NE(maker_of_plans(other, kReport, {}), maker_of_plans(kGpu, kReport, {}));
  EXPECT_NE(maker_of_plans(kGpu, newer, {}), maker_of_plans(kGpu, kReport, {}));
}

}  // namespace
}  // namespace dtrain::backend::cuda
