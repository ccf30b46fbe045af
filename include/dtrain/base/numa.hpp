// Processors and the memory that is near them.
#pragma once

#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain {

// The processors of each NUMA node that this process may use, ascending; nodes without any are left out. One node with
// all of them where the kernel tells of none. `root` is where /sys is.
std::vector<std::vector<int>> numa_nodes(const Path& root = "/");

// The processors for the worker on this seat of the machine, who runs so many threads: those of one node, where workers
// can be spread evenly over the nodes, so that what a worker writes first lies near it. Empty: all of them.
std::vector<int> cpus_of_worker(const std::vector<std::vector<int>>& nodes, int seat, int threads);

// The lowest number that no other process of this machine holds. Free again when `held` is closed, however that
// happens. Throws Error.
struct Seat {
  int number = 0;
  FileDescriptor held;
};
Seat take_seat();

// This process, and whatever it starts from now on, runs on these alone. Before it has threads. Throws Error.
void keep_to_cpus(const std::vector<int>& cpus);

}  // namespace dtrain
