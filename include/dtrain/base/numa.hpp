// NUMA nodes: processors and the memory that is near them.
#pragma once

#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain {

// The processors of each NUMA node that this process may use, ascending; nodes without any are left out. One node with
// all of them where the kernel lists none. `root` is where /sys is.
std::vector<std::vector<int>> numa_nodes(const Path& root = "/");

// The processors for the worker in this slot of the machine, which runs so many threads: those of one node if workers
// can be spread evenly over the nodes, so that the memory that a worker writes first is near it. Empty: all of them.
std::vector<int> cpus_of_worker(const std::vector<std::vector<int>>& nodes, int slot, int threads);

// The lowest slot that no other process of this machine holds. The slot is free again when `held` is closed, also by
// the end of the process. Throws Error.
struct [[nodiscard]] MachineSlot {
  int number = 0;
  FileDescriptor held;
};
MachineSlot take_machine_slot();

// Restricts this process and its future children to these processors. Call it before there are threads. Throws Error.
void keep_to_cpus(const std::vector<int>& cpus);

}  // namespace dtrain
