#include "shard_choice.hpp"

#include <algorithm>

#include <dtrain/comm/tree.hpp>

namespace dtrain::config {
namespace {

// Batch norm over fewer samples than this is noisy, and small shards waste the processor.
constexpr int kFewestSamples = 16;
constexpr int kShardsForEachWorker = 4;

int largest_with_enough_samples(int global_batch) {
  int shards = 1;
  while (global_batch / (2 * shards) >= kFewestSamples) shards *= 2;
  return shards;
}

}  // namespace

int default_max_workers(int hosts) { return std::max(8, 2 * hosts); }

int choose_shards(const ShardNeeds& needs) {
  const int fewest = comm::power_of_two_at_least(needs.workers) * needs.accumulate;
  if (needs.max_workers == 0) return fewest;
  const int for_each = needs.replicas ? 1 : kShardsForEachWorker;
  const int wanted = comm::power_of_two_at_least(for_each * needs.max_workers);
  return std::max(fewest, std::min(wanted, largest_with_enough_samples(needs.global_batch)));
}

}  // namespace dtrain::config
