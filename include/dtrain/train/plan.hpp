// Which samples a step takes and which rank computes them: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::train {

// An epoch of `samples` in steps of `global_batch`; the last step may be smaller, or several are. A step is cut into
// `shards` logical shards, a power of two, for summation; the samples go to all of them, or to so many of them as there
// are workers.
struct EpochPlan {
  std::uint64_t samples = 0;
  int global_batch = 0;
  int shards = 1;
  int workers = 0;  // 0: every shard has samples; else so many have, the first of each rank's, and the others are empty
  // Samples of the last steps, each at most global_batch, where groups of pictures have remainders. Empty: of the only
  // one that may be smaller.
  std::vector<int> last = {};
  std::uint64_t steps_from(std::uint64_t position) const;  // that are left when so many samples are consumed
  int step_size(std::uint64_t position) const;             // g: samples of the step that begins there
};

// What one rank does in one step: samples slice (positions of the epoch's order) cut into its shards.
struct RankStep {
  data::Slice slice;
  std::vector<backend::ShardRange> shards;  // first is relative to the slice
};
// Shard i of a step of g samples that begins at `position` holds floor(i*g/V) ... floor((i+1)*g/V)-1 of them.
RankStep rank_step(const EpochPlan& plan, std::uint64_t position, comm::ShardSpan span);

// Samples of the last steps: what is left of each group behind its whole batches.
std::vector<int> last_steps(const std::vector<data::PictureGroup>& groups, int global_batch);

// An evaluation's blocks are the steps of a plan. Block i belongs to rank i mod ranks.
std::vector<data::Slice> evaluation_blocks(const EpochPlan& plan, int rank, int ranks);

}  // namespace dtrain::train
