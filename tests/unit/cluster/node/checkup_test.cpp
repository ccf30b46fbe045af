#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/cluster/checkup.hpp>

#include "common/set_variable.hpp"

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
  EXPECT_EQ(gpu_troubles({.gpu_error = "nvidia-smi hangs"}, 1).front(), "nvidia-smi hangs");
  EXPECT_EQ(gpu_troubles({.gpu_error = "nvidia-smi hangs"}, std::nullopt).front(), "nvidia-smi hangs");
  EXPECT_EQ(gpu_troubles({.devices = 1, .gpu_error = "nvidia-smi hangs"}, 0).front(), "nvidia-smi hangs");
  EXPECT_TRUE(gpu_troubles({.gpu_error = "nvidia-smi fails"}, 0).empty()) << "the image has it, and the type no GPU";
}

TEST(Checkup, AnErrorThatNoCounterShowsIsWhatTheDriverAsksFor) {
  const auto gpus = gpus_in(
      "0, NVIDIA H100, 580.95.05, 31, 81559, 0, 0, None\n"
      "1, NVIDIA H100, 580.95.05, 31, 81559, 0, 0, Reset\n"
      "2, NVIDIA H100, 580.95.05, 31, 81559, 0, 1, [N/A]\n");
  EXPECT_EQ(gpu_troubles({.gpus = gpus}, 3),
            (std::vector<std::string>{"GPU 1: its driver asks for 'Reset' after an error",
                                      "GPU 2: faulty memory could not be replaced"}));
}

std::vector<std::string> troubles_of_disk(std::uint64_t bytes, std::uint64_t free, std::uint64_t files,
                                          std::uint64_t free_files) {
  return troubles_of({.disks = {{"/", bytes, free, files, free_files}}}, 0);
}

TEST(Checkup, ADiskIsFullWithLessThanAHundredthOrAFewBytes) {
  constexpr std::uint64_t kGiB = 1 << 30;
  EXPECT_TRUE(troubles_of_disk(8 * kGiB, kGiB / 8, 0, 0).empty());
  EXPECT_EQ(troubles_of_disk(8 * kGiB, kGiB / 16, 0, 0).front(), "the disk of / is full: 64.0 MiB of 8.0 GiB are free");
  EXPECT_TRUE(troubles_of_disk(2'000 * kGiB, kGiB / 3, 0, 0).empty());
  EXPECT_EQ(troubles_of_disk(8 * kGiB, kGiB, 1'000, 9).front(),
            "the disk of / takes hardly any more files: 9 of 1000 are left");
}

TEST(Checkup, SeesTheDisksOfThisMachineOnce) {
  const std::vector<DiskFacts> disks = look_at_disks();
  ASSERT_FALSE(disks.empty());
  EXPECT_EQ(disks.front().path, "/");
  EXPECT_GE(disks.front().bytes, disks.front().free_bytes);
  EXPECT_GT(disks.front().bytes, 0U);
}

TEST(Checkup, OfANodeWithoutDisksIsRead) {
  EXPECT_TRUE(
      troubles_of(checkup_from_json(Json::parse(R"({"devices": 0, "gpus": [], "gpu_error": ""})", "a report")), 0)
          .empty());
}

TEST(Checkup, IsTheSameAfterItsWayToTheHead) {
  Checkup sent{.devices = 2, .gpus = gpus_in(kTwo), .gpu_error = "none"};
  sent.gpus[0].remap_failed = true;
  sent.gpus[0].recovery = "Reboot";
  sent.disks = {{"/tmp", 10, 5, 100, 50}};
  sent.notice = net::EndNotice{true, "spot notice: stop at noon"};
  const Checkup got = checkup_from_json(Json::parse(to_json(sent).dump(), "a report"));
  EXPECT_EQ(to_json(got).dump(), to_json(sent).dump());
  EXPECT_TRUE(got.gpus[0].remap_failed && got.gpus[0].recovery == "Reboot");
  EXPECT_EQ(got.notice, sent.notice);
  EXPECT_EQ(got.disks.at(0).free_bytes, 5U);
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

// The variable is of the process that looks, and says nothing about the machine.
TEST(Checkup, CountsTheGpusThatTheEnvironmentHides) {
  const SetVariable hidden("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(look_at_gpus(std::chrono::seconds(1)).devices, nvidia_device_count("/dev", std::nullopt));
}

}  // namespace
}  // namespace dtrain::cluster
