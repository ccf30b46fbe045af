// One part of a reduction as a rank's sends, receptions and additions, decided before any byte moves: pure. The part is
// cut into a chunk for each rank, its owner. First all ranks send their pieces of the tree to the owners; each owner
// then adds up its chunk, left first; then it sends the sum to all. NCCL matches what two ranks send each other by
// order alone, so both sides go by node.
#pragma once

#include <vector>

#include <dtrain/comm/communicator.hpp>

#include "buckets.hpp"
#include "merge_plan.hpp"

namespace dtrain::comm::nccl {

// None empty, none partly rounded.
std::vector<Bucket> parts_of(const ReductionShape& shape, const std::vector<FloatRange>& ranges);

struct Transfer {
  int peer = -1;
  int node = -1;  // of the merge plan; of a sum: -1
  Chunk chunk;    // positions in the contribution
};

// An addition in this rank's chunk: node = left + right.
struct Join {
  int left = -1, right = -1, node = -1;
};

struct ExchangePlan {
  Bucket part;
  Chunk own;  // this rank's chunk; may be empty
  std::vector<Transfer> piece_sends, piece_receptions;
  std::vector<Join> joins;  // children before parents
  int root = -1;            // node
  std::vector<Transfer> sum_sends, sum_receptions;
};

ExchangePlan plan_exchange(const MergePlan& plan, const Bucket& part, int rank, int ranks);

}  // namespace dtrain::comm::nccl
