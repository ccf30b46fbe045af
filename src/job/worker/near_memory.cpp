#include "near_memory.hpp"

#include <fmt/format.h>

#include <dtrain/base/numa.hpp>

namespace dtrain::job {

FileDescriptor sit_near_memory(int threads, Reporter& reporter) {
  const std::vector<std::vector<int>> nodes = numa_nodes();
  if (nodes.size() == 1) return {};
  Seat seat = take_seat();
  const std::vector<int> cpus = cpus_of_worker(nodes, seat.number, threads);
  if (cpus.empty()) return {};
  keep_to_cpus(cpus);
  reporter.note(fmt::format("keeps to the {} processors of one NUMA node, {} and on", cpus.size(), cpus.front()));
  return std::move(seat.held);
}

}  // namespace dtrain::job
