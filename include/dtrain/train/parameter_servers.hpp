// Parameter servers, as MXNet's dist_async and stale synchronous parallel (Ho et al. 2013) have them. The parameters
// are cut into shards, and rank k of a generation serves shard k from a thread of its own, beside its training. A
// worker takes a batch of the epoch, pulls the weights, pushes its gradients, and goes on without waiting for the
// others; the server updates its shard with each push. Fast workers therefore take more batches of an epoch than slow
// ones.
//
// Between two sections (an epoch, or what lies between two checkpoints or changes of membership) all workers hold one
// state again: the servers' shards put together. The order in which pushes arrive decides about the bits of that state.
#pragma once

#include <optional>
#include <string>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/value_range.hpp>

namespace dtrain::train {

inline constexpr ValueRange kStalenessRange = between(0, 65536);

struct ParameterServers {
  int servers = 0;  // 0: there are none; a generation of fewer workers has as many servers as workers
  // How many steps a worker may be ahead of the slowest one; nullopt: no limit. 0: a step has the global batch and the
  // logical shards of a training without servers, and the servers add them up in the same order: the same bits.
  std::optional<int> max_staleness = {};
  // What a server listens with, and what computes its updates.
  std::string address = "127.0.0.1", secret = {};
  const backend::Backend* backend = nullptr;  // borrowed
  int threads = 1;                            // of an update

  bool any() const { return servers > 0; }
  bool is_synchronous() const { return any() && max_staleness == 0; }
  // Each worker has batches of its own.
  bool is_asynchronous() const { return any() && max_staleness != 0; }
};

}  // namespace dtrain::train
