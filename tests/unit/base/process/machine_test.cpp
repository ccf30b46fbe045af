#include <dtrain/base/machine.hpp>

#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

TEST(Machine, HasMemory) {
  EXPECT_GT(memory_info("MemTotal"), std::uint64_t{1} << 20);
  EXPECT_LE(memory_info("MemAvailable"), memory_info("MemTotal"));
  EXPECT_EQ(memory_info("NoSuchLine"), 0u);
}

TEST(Machine, HasTheGpusOfItsDeviceFilesWhateverTheirNumbers) {
  const TemporaryFolder folder;
  const auto count = [&](const std::optional<std::string>& visible) {
    return nvidia_device_count(folder.path(), visible);
  };
  for (const char* other : {"nvidiactl", "nvidia-uvm", "nvidia", "nvidia0x", "null"})
    write_file_atomic(folder.path() / other, "");
  EXPECT_EQ(count(std::nullopt), 0);
  EXPECT_EQ(count("0"), 0) << "a machine without GPUs";
  write_file_atomic(folder.path() / "nvidia3", "");
  EXPECT_EQ(count(std::nullopt), 1) << "a container has the one that it was given";
  write_file_atomic(folder.path() / "nvidia12", "");
  EXPECT_EQ(count(std::nullopt), 2);
  EXPECT_EQ(nvidia_device_count(folder.path() / "none", std::nullopt), 0);
}

TEST(Machine, HasTheGpusThatItsEnvironmentShows) {
  const TemporaryFolder folder;
  for (const char* file : {"nvidia0", "nvidia1"}) write_file_atomic(folder.path() / file, "");
  const auto count = [&](const char* visible) { return nvidia_device_count(folder.path(), visible); };
  EXPECT_EQ(count("0"), 1);
  EXPECT_EQ(count("1, 0"), 2);
  EXPECT_EQ(count("GPU-8932f937"), 1);
  EXPECT_EQ(count("MIG-1,MIG-2,MIG-3"), 2) << "parts of GPUs are no more GPUs";
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("0,-1,1"), 1) << "CUDA ends at the first that is none";
  EXPECT_EQ(count("0,2"), 1);
}

TEST(Machine, FindsTheFirstProgramOfTheName) {
  const TemporaryFolder folder;
  const Path first = folder.path() / "first", second = folder.path() / "second";
  for (const Path& place : {first, second}) {
    make_folder(place);
    write_file_atomic(place / "tool", "#!/bin/sh\n", 0644);
  }
  const std::string folders = first.string() + ":" + second.string();
  EXPECT_EQ(find_in_path("tool", folders), std::nullopt) << "it is not executable";
  std::filesystem::permissions(second / "tool", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_in_path("tool", folders), second / "tool");
  EXPECT_EQ(find_in_path("tool", ""), std::nullopt);
}

}  // namespace
}  // namespace dtrain
