// Reductions of known leaves, and the sum that they must give.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/comm/tree.hpp>

namespace dtrain::comm {

// Value i of a leaf: their float32 sum depends on the grouping.
float awkward(int shard, std::int64_t i);

// The sum over all shards, by the definition of the tree. Kept: asking again costs nothing.
const std::vector<float>& direct_tree(const ReductionShape& shape);
bool same_bits(std::span<const float> a, std::span<const float> b);

// A part of that leaf, whichever is asked for.
std::shared_ptr<const DeferredFloats> deferred_leaf(int shard);

// What rank `comm.rank()` does in one reduction; its note holds its rank. `parts` pieces of each leaf become ready, the
// last one first. All but the first piece are deferred, but for a shard in eight.
Reduced reduce(Communicator& comm, const ReductionShape& shape, int parts = 3);

// The same of leaves that are taken part by part on `device`, where the sum is: read from there.
Reduced reduce_on_device(Communicator& comm, Accelerator& device, const ReductionShape& shape,
                         const std::vector<FloatRange>& parts);

// Runs `work` in one thread for each rank and returns what each of them threw: "" for nothing.
std::vector<std::string> run_ranks(const std::vector<std::unique_ptr<Communicator>>& world,
                                   const std::function<void(Communicator&)>& work);

}  // namespace dtrain::comm
