// How much memory of its GPU a worker plans for a step.
#pragma once

#include "config/train_options.hpp"

namespace dtrain::config {

// What a worker's GPU holds in a step beside one shard.
struct MemoryOfStep {
  int shards = 1, waiting_sums = 0;
};

// The least that a worker holds while an elastic job grows from the workers of its start to the most that it takes: a
// GPU that joins later must hold no more than its share by then. While there are fewer workers, or where a list of
// hosts gives a host fewer than it has GPUs, each has more shards than are counted here. So fewer shards may be planned
// than a worker has, and never more.
MemoryOfStep memory_of_step(const TrainOptions& options);

}  // namespace dtrain::config
