// One optimizer step of one rank: shards to contributions, contributions to their sum over all ranks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::train {

class StepRunner {
 public:
  // executable and comm must outlive this. Of the leaves the first `rounded` floats travel as bfloat16.
  StepRunner(const nn::Graph& graph, backend::Executable& executable, comm::Communicator& comm, int logical_shards,
             std::int64_t rounded);

  // Contributes this rank's shards of `batch`; what is complete is on its way to the others before this returns, or, on
  // a GPU, will be without being waited for. Changes no persistent state.
  void compute(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, const comm::Note& note);
  // After compute(): everybody's notes; metrics() and apply() know the sum over all shards of all ranks from then on.
  const std::vector<comm::Note>& reduce();
  backend::StepMetrics metrics() const;
  void apply(const backend::Update& update);

 private:
  bool compute_there(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
                     const backend::StepKey& key, const comm::Note& note);

  backend::Executable& executable_;
  comm::Communicator& comm_;
  const backend::ContributionLayout layout_;
  const comm::ReductionShape shape_;
  const std::vector<FloatRange> parts_;  // of a contribution, where the executable leaves it on a GPU
  std::unique_ptr<comm::Reduction> reduction_;
  std::unique_ptr<comm::DeviceReduction> there_;  // in its place, between GPUs
  comm::Reduced reduced_;
  std::optional<backend::StepMetrics> held_;  // the executable has the sum, and it was this
};

}  // namespace dtrain::train
