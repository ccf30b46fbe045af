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

TEST(Machine, HasOneIdentity) {
  EXPECT_EQ(machine_identity(), machine_identity());
  EXPECT_EQ(machine_identity().size(), 32u);
}

class MemoryOfGroups : public testing::Test {
 protected:
  MemoryOfGroups() { write("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 8 kB\nMemAvailable: 512 kB\n"); }
  void write(const Path& path, std::string_view content) {
    make_folder((folder.path() / path).parent_path());
    write_file_atomic(folder.path() / path, content);
  }
  Memory memory() const { return usable_memory(folder.path()); }
  TemporaryFolder folder;
};

TEST_F(MemoryOfGroups, IsThatOfTheMachineWhereTheySayNothing) {
  write("proc/self/cgroup", "0::/job\n");
  EXPECT_EQ(memory().total, 1024u << 10);
  EXPECT_EQ(memory().available, 512u << 10);
  write("sys/fs/cgroup/job/memory.max", "max\n");
  write("sys/fs/cgroup/job/memory.current", "100000000\n");
  EXPECT_EQ(memory().available, 512u << 10);
}

TEST_F(MemoryOfGroups, IsWhatTheTightestGroupAboveHasLeftWithThePagesOfFiles) {
  write("proc/self/cgroup", "0::/pod/worker\n");
  write("sys/fs/cgroup/pod/worker/memory.max", "max\n");
  write("sys/fs/cgroup/pod/memory.max", "100000\n");
  write("sys/fs/cgroup/pod/memory.current", "90000\n");
  EXPECT_EQ(memory().total, 100000u);
  EXPECT_EQ(memory().available, 10000u);
  write("sys/fs/cgroup/pod/memory.stat", "anon 30000\nfile 60000\ninactive_file 40000\nactive_file 5000\n");
  EXPECT_EQ(memory().available, 55000u);
  write("sys/fs/cgroup/pod/memory.current", "200000\n");
  EXPECT_EQ(memory().available, 0u);
}

TEST_F(MemoryOfGroups, IsLimitedByTheFirstVersionToo) {
  write("proc/self/cgroup", "4:memory:/docker/1\n3:cpu:/other\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "200000\n");
  write("sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "150000\n");
  write("sys/fs/cgroup/memory/docker/1/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
  EXPECT_EQ(memory().total, 200000u);
  EXPECT_EQ(memory().available, 70000u);
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
