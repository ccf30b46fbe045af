// Where the time of a training step goes, by kinds of operations, each beside its own limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::bench {

struct StepPart {
  std::string name;
  double seconds = 0;                   // of the step
  std::optional<double> limit_seconds;  // its primitives alone, or its bytes by the rate of memory; nullopt: none known
  std::uint64_t bytes = 0;              // to and from memory, in the whole step

  double limit_share() const { return limit_seconds && seconds > 0 ? *limit_seconds / seconds : 0; }
};

struct MeasuredStep {
  double seconds = 0;                 // the whole
  double loading = 0, applying = 0;   // the wait for the loader, and the optimizer
  std::uint64_t optimizer_bytes = 0;  // that the optimizer reads and writes
  int shards = 1, lanes = 1;
};

// How many shards one lane computes, one after the other.
int rounds_of(int shards, int lanes);

// What the optimizer reads and writes: gradients, parameters and its own slots.
std::uint64_t optimizer_bytes(const backend::ModelState& state);

// Pure. Convolutions, dense layers, norms, elementwise, pooling, reorders, optimizer, loader, and what is left of the
// step: waiting for the other lanes, sums over shards, other programs on the same cores.
std::vector<StepPart> step_parts(const backend::Profile& profile, const MeasuredStep& step);

}  // namespace dtrain::bench
