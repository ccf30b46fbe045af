#include <dtrain/base/gpu_models.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/files.hpp>

namespace dtrain {
namespace {

TEST(GpuModels, TrainFromTheLeastCapabilityOn) {
  for (const char* name : {"V100", "T4", "T4g", "K80", "Radeon Pro V520"}) EXPECT_FALSE(gpu_model(name)->trains());
  for (const char* name : {"A10G", "L4", "A100", "H100", "B200"}) EXPECT_TRUE(gpu_model(name)->trains());
  EXPECT_EQ(gpu_model("abacus"), nullptr);
  EXPECT_EQ(gpu_model_of_instance("g4dn.xlarge"), gpu_model("T4"));
  EXPECT_EQ(gpu_model_of_instance("g5.xlarge"), gpu_model("A10G"));
  EXPECT_EQ(gpu_model_of_instance("p3dn.24xlarge"), gpu_model("V100"));
  EXPECT_EQ(gpu_model_of_instance("c5.large"), nullptr);
  EXPECT_EQ(gpu_model_of_instance(""), nullptr);
}

TEST(GpuModels, ReadCapabilities) {
  EXPECT_EQ(capability_from("7.5"), (Capability{7, 5}));
  EXPECT_EQ(text_of(capability_from("10.0")), "10.0");
  EXPECT_GT(capability_from("10.0"), capability_from("9.0"));
  EXPECT_EQ(capability_from("?"), Capability{});
}

// The page shows this very table.
TEST(GpuModels, AreThoseOfTheGuide) {
  const std::string page = read_file(Path(DTRAIN_TESTS_DIR) / "../examples/gpus.md");
  std::string table = "| GPU | compute capability | EC2 types | trains |\n|---|---|---|---|\n";
  for (const GpuModel& model : kGpuModels) {
    const std::string capability = model.capability == Capability{} ? "none" : text_of(model.capability);
    table +=
        fmt::format("| {} | {} | {} | {} |\n", model.name, capability, model.instances, model.trains() ? "yes" : "no");
  }
  EXPECT_NE(page.find(table), std::string::npos) << "examples/gpus.md must have\n" << table;
  EXPECT_NE(page.find(fmt::format("driver {} or newer", kLeastDriver)), std::string::npos);
}

}  // namespace
}  // namespace dtrain
