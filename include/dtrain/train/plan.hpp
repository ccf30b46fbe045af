// Which samples a step takes and who computes them: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::train {

// An epoch of `samples` in steps of `global_batch`; the last step may be smaller. V = `shards` logical shards each.
struct EpochPlan {
  std::uint64_t samples = 0;
  int global_batch = 0;
  int shards = 1;
  std::uint64_t steps() const;
  int step_size(std::uint64_t step) const;  // g: samples of the step
};

// What one rank does in one step: samples slice (positions of the epoch's order) cut into its shards.
struct RankStep {
  data::Slice slice;
  std::vector<backend::ShardRange> shards;  // first is relative to the slice
};
// Shard i of a step of g samples holds floor(i*g/V) ... floor((i+1)*g/V)-1.
RankStep rank_step(const EpochPlan& plan, std::uint64_t step, int rank, int ranks);

// Block i of evaluation (fixed size, last one smaller) belongs to rank i mod ranks.
std::vector<data::Slice> evaluation_blocks(std::uint64_t samples, int block, int rank, int ranks);

}  // namespace dtrain::train
