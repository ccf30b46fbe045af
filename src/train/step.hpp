// One optimizer step of one rank: shards to contributions, contributions to their sum, the sum to new weights.
#pragma once

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::train {

class StepRunner {
 public:
  // Both must outlive this.
  StepRunner(const nn::Graph& graph, backend::Executable& executable, comm::Communicator& comm, int logical_shards);

  // The sum over all shards of the step, of all ranks. `batch` holds this rank's samples, `shards` its shards.
  // Changes no persistent state; the returned span lives until the next call.
  std::span<const float> contribute(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
                                    const backend::StepKey& key);
  backend::StepMetrics metrics() const { return backend::metrics_of(layout_, sum_); }

 private:
  backend::Executable& executable_;
  comm::Communicator& comm_;
  backend::ContributionLayout layout_;
  int logical_shards_;
  std::vector<float> sum_;
};

}  // namespace dtrain::train
