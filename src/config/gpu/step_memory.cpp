#include "step_memory.hpp"

#include <algorithm>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/comm/tree.hpp>

#include "gpu_choice.hpp"

namespace dtrain::config {
namespace {

MemoryOfStep memory_beside(const TrainOptions& options, int workers) {
  const bool own_batches = options.job.has_own_batches();
  const int shards = own_batches ? comm::power_of_two_at_least(workers) : options.compute.logical_shards;
  const bool rounds = options.job.gradient_dtype == backend::DType::bfloat16;
  MemoryOfStep memory{.shards = own_batches ? 1 : (shards + workers - 1) / workers};
  if (options.job.compression.any()) return memory;  // on the host
  if (workers == 1) {
    memory.waiting_sums = rounds ? 0 : backend::waiting_subtrees(shards);
  } else if (options.job.transport == comm::Transport::nccl) {
    const int kept = comm::contributions_kept_for_nccl(shards, workers, !options.compute.cuda.deterministic);
    memory.waiting_sums = rounds ? kept + kept / 2 : kept;  // what travels lies there too, in half of the bytes
  }
  return memory;
}

}  // namespace

MemoryOfStep memory_of_step(const TrainOptions& options) {
  const JobOptions& job = options.job;
  int workers = job.is_job() ? options.compute.hosts * workers_of_host(options.compute) : 1;
  MemoryOfStep least = memory_beside(options, workers);
  if (!job.elastic || job.has_own_batches()) return least;  // a worker with its own batch has one shard in any job
  // Sums wait in fewest places where a power of two of workers divides the shards evenly.
  const int most = std::min(job.max_workers, options.compute.logical_shards);
  while (workers < most) {
    workers = std::min(most, comm::power_of_two_at_least(workers + 1));
    const MemoryOfStep memory = memory_beside(options, workers);
    least.shards = std::min(least.shards, memory.shards);
    least.waiting_sums = std::min(least.waiting_sums, memory.waiting_sums);
  }
  return least;
}

}  // namespace dtrain::config
