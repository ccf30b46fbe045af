// Reductions of known leaves, and the sum that they must give.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/comm/tree.hpp>

namespace dtrain::comm {

// Values whose float32 sum depends on the grouping.
inline float awkward(int shard, std::int64_t i) {
  return (shard % 2 ? 1e8f : 1.0f) / static_cast<float>(shard + 3) + static_cast<float>(i % 1013) * 0.37f;
}

// The sum over shards [first, last), by the definition of the tree.
std::vector<float> direct_tree(int first, int last, const ReductionShape& shape);

// What rank `comm.rank()` does in one reduction; its note holds its rank. `parts` pieces of each leaf become ready, the
// last one first.
Reduced reduce(Communicator& comm, const ReductionShape& shape, int parts = 3);

// Runs `work` in one thread for each rank and returns what each of them threw: "" for nothing.
std::vector<std::string> run_ranks(const std::vector<std::unique_ptr<Communicator>>& world,
                                   const std::function<void(Communicator&)>& work);

}  // namespace dtrain::comm
