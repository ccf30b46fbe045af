// How the leaves of a rank become its pieces of the tree: on a stack. Pure.
#pragma once

#include <vector>

#include <dtrain/comm/tree.hpp>

namespace dtrain::comm::nccl {

// A leaf is put into slot `slot`; then, so many times, the topmost slot is added to the one below it.
struct LeafPlace {
  int slot = 0;
  int additions = 0;
};

struct LocalSums {
  std::vector<LeafPlace> leaves;  // by shard, from the span's first on
  int slots = 0;                  // that are used at once, at most
  int pieces = 0;                 // left at the end, left to right, in slots 0, 1, ...
};

LocalSums plan_local_sums(ShardSpan span);

}  // namespace dtrain::comm::nccl
