#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/checkup.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kTwo =
    "0, NVIDIA A10G, 580.95.05, 31, 23028, 0\n"
    "1, NVIDIA A10G, 580.95.05, 30, 23028, 2\n";

TEST(Checkup, ReadsWhatNvidiaSmiWrites) {
  const auto gpus = gpus_in(kTwo);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].number, 1);
  EXPECT_EQ(gpus[1].name, "NVIDIA A10G");
  EXPECT_EQ(gpus[1].driver, "580.95.05");
  EXPECT_EQ(gpus[1].celsius, 30);
  EXPECT_EQ(gpus[1].memory_mib, 23028);
  EXPECT_EQ(gpus[1].ecc_errors, 2);
  EXPECT_THROW(gpus_in("No devices were found\n"), DataError);
}

TEST(Checkup, AGpuMayHaveNothingToTell) {
  const auto gpus = gpus_in(
      "0, Tesla K80, 470.1, 40, 11441, [N/A]\n1, Tesla K80, 470.1, [GPU requires reset], 11441, [Not Supported]\n");
  EXPECT_EQ(gpus[0].ecc_errors, std::nullopt);
  EXPECT_EQ(gpus[0].complaint, "");
  EXPECT_EQ(gpus[1].ecc_errors, std::nullopt);
  EXPECT_EQ(gpus[1].complaint, "[GPU requires reset]");
}

TEST(Checkup, NamesWhatIsWrongWithGpus) {
  const Checkup two{.devices = 2, .gpus = gpus_in(kTwo)};
  EXPECT_EQ(gpu_troubles(two, 2), (std::vector<std::string>{"GPU 1: 2 uncorrected memory errors"}));
  EXPECT_EQ(gpu_troubles(two, 8).front(), "2 of 8 GPUs are seen");
  EXPECT_EQ(gpu_troubles({.devices = 1}, std::nullopt).front(), "0 of 1 GPUs are seen");
  EXPECT_TRUE(gpu_troubles({}, 0).empty());
  EXPECT_TRUE(gpu_troubles({}, std::nullopt).empty());
  EXPECT_EQ(gpu_troubles({.gpu_error = "nvidia-smi hangs"}, 0).front(), "nvidia-smi hangs");
}

TEST(Checkup, IsTheSameAfterItsWayToTheHead) {
  const Checkup sent{.devices = 2, .gpus = gpus_in(kTwo), .gpu_error = "none"};
  const Checkup got = checkup_from_json(Json::parse(to_json(sent).dump(), "a report"));
  EXPECT_EQ(to_json(got).dump(), to_json(sent).dump());
}

TEST(ClockOffset, TakesHalfOfTheWayAndLeavesTheWorkOut) {
  // Asked at 100 s, heard at 110 s; the work took 8 s, so the way there was 1 s, give or take that second.
  constexpr std::int64_t kSecond = 1'000'000'000;
  const ClockOffset even = clock_offset(100 * kSecond, 110 * kSecond, 101 * kSecond, 8 * kSecond);
  EXPECT_DOUBLE_EQ(even.seconds, 0);
  EXPECT_DOUBLE_EQ(even.within, 1);
  EXPECT_FALSE(even.is_wrong());
  EXPECT_FALSE((ClockOffset{.seconds = -1.9, .within = 1}.is_wrong()));
  EXPECT_TRUE((ClockOffset{.seconds = -2.1, .within = 1}.is_wrong()));
}

}  // namespace
}  // namespace dtrain::cluster
