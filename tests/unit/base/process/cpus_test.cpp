#include <gtest/gtest.h>

#include <limits>

#include <dtrain/base/cpus.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

class Cpus : public testing::Test {
 protected:
  void write(const Path& path, std::string_view content) {
    make_folder((folder.path() / path).parent_path());
    write_file_atomic(folder.path() / path, content);
  }
  double quota() const { return cpu_quota(folder.path()); }
  TemporaryFolder folder;
};

TEST_F(Cpus, AreUnlimitedWithoutControlGroups) {
  EXPECT_EQ(quota(), std::numeric_limits<double>::infinity());
  EXPECT_GE(usable_cpus(), 1);
}

TEST_F(Cpus, AreWhatTheTightestGroupAboveAllows) {
  write("proc/self/cgroup", "0::/job/worker\n");
  write("sys/fs/cgroup/job/worker/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(Cpus, OfAContainerAreInTheRootThatItSees) {
  write("proc/self/cgroup", "0::/../host/name\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(Cpus, AreLimitedByTheFirstVersionToo) {
  write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/docker/1\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(Cpus, AreFoundWhereTheControllerIsMountedByItsShortName) {
  write("proc/self/cgroup", "3:cpuacct,cpu:/docker/1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

}  // namespace
}  // namespace dtrain
