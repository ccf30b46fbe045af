#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/numa.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

using Nodes = std::vector<std::vector<int>>;

TEST(Numa, FindsTheProcessorsOfEachNodeThatMayBeUsed) {
  const TemporaryFolder folder;
  const Path nodes = folder.path() / "sys/devices/system/node";
  for (const char* name : {"node0", "node1", "node2", "power"}) std::filesystem::create_directories(nodes / name);
  const int mine = numa_nodes().front().front();
  write_file_atomic(nodes / "node0/cpulist", "4000-4003,4008\n");  // of others
  write_file_atomic(nodes / "node1/cpulist", std::to_string(mine) + "\n");
  write_file_atomic(nodes / "node2/cpulist", "\n");  // memory alone
  EXPECT_EQ(numa_nodes(folder.path()), Nodes({{mine}}));
}

TEST(Numa, IsOneNodeWhereTheKernelTellsOfNone) {
  const TemporaryFolder folder;
  ASSERT_EQ(numa_nodes(folder.path()).size(), 1u);
  EXPECT_GE(static_cast<int>(numa_nodes(folder.path()).front().size()), usable_cpus());
}

const Nodes kTwo{{0, 1, 2, 3}, {4, 5, 6, 7}};

TEST(Numa, SpreadsWorkersEvenlyOverTheNodes) {
  EXPECT_EQ(cpus_of_worker(kTwo, 0, 4), kTwo[0]);
  EXPECT_EQ(cpus_of_worker(kTwo, 1, 4), kTwo[1]);
  EXPECT_EQ(cpus_of_worker(kTwo, 2, 2), kTwo[0]);
  EXPECT_EQ(cpus_of_worker(kTwo, 3, 2), kTwo[1]);
}

TEST(Numa, BindsNobodyWhoNeedsMoreThanANode) { EXPECT_TRUE(cpus_of_worker(kTwo, 0, 8).empty()); }

TEST(Numa, BindsNobodyWhereANodeWouldHaveMoreWorkersThanAnother) {
  EXPECT_TRUE(cpus_of_worker({{0, 1, 2}, {3, 4, 5}}, 0, 2).empty());
}

TEST(Numa, BindsNobodyOnOneNode) { EXPECT_TRUE(cpus_of_worker({{0, 1}}, 1, 1).empty()); }

TEST(Numa, GivesTheLowestSeatThatIsFree) {
  const MachineSlot first = take_machine_slot();
  auto second = std::make_unique<MachineSlot>(take_machine_slot());
  const MachineSlot third = take_machine_slot();
  EXPECT_LT(first.number, second->number);
  EXPECT_LT(second->number, third.number);
  const int left = second->number;
  second.reset();
  EXPECT_EQ(take_machine_slot().number, left);
}

TEST(Numa, KeepsToItsProcessors) {
  const int mine = numa_nodes().front().front();
  std::thread([&] {  // the mask is the thread's, where there is more than one
    keep_to_cpus({mine});
    EXPECT_EQ(usable_cpus(), 1);
  })
      .join();
}

}  // namespace
}  // namespace dtrain
