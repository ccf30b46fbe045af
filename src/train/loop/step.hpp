// One optimizer step of one rank: shards to contributions, contributions to their sum over all ranks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/gradient_compression.hpp>

#include "norm_meeting.hpp"

namespace dtrain::train {

class StepRunner {
 public:
  // All must outlive this. `shape` is that of the executable's contributions. `compressor`, if there is one, gets
  // begin_step() from the caller; contributions of a GPU then go through the host.
  StepRunner(backend::Executable& executable, comm::Communicator& comm, const comm::ReductionShape& shape,
             GradientCompressor* compressor = nullptr);

  // The shards of each rank from the next step on, and the compressor of them.
  void set_spans(const comm::ShardSpans& spans, GradientCompressor* compressor) {
    shape_.spans = spans;
    compressor_ = compressor;
  }
  // From the next step on shards meet at synchronized norms. The membership hears when this rank waits for others
  // there.
  void meet_at_norms(elastic::Membership& membership) {
    meeting_ = std::make_unique<NormMeeting>(comm_, shape_.size, membership);
  }
  // During compute(), about once a second as shards are computed on the host: from any thread.
  void give_signs_of_life(std::function<void()> sign) { sign_of_life_ = std::move(sign); }
  // Contributes this rank's shards of `batch`; what is complete is on its way to the others before this returns, or, on
  // a GPU, will be without being waited for. Changes no persistent state.
  void compute(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, const comm::Note& note);
  // After compute(): what it took to wait for other ranks at norms.
  std::chrono::microseconds waited_at_norms() const {
    return meeting_ ? meeting_->waited() : std::chrono::microseconds{0};
  }
  // After compute(), where gradients stay on a GPU: waits for the other ranks to come to this step, and has the
  // exchange begin while the GPU still computes. False: they do not, and compute() has waited for all that it computes.
  bool exchange();
  // After exchange() returned true: until this rank's own contributions are computed. Throws comm::PeerLost.
  void wait_until_computed();
  // After compute(): the notes of all ranks; metrics() and apply() know the sum over all shards of all ranks from then
  // on.
  const std::vector<comm::Note>& reduce();
  backend::StepMetrics metrics() const { return metrics_; }
  // After reduce() and before apply(): the length of the gradient of the mean loss, which is the first `gradients`
  // floats of a contribution. nullopt: it is not known.
  std::optional<double> gradient_norm(std::size_t gradients);
  void apply(const backend::Update& update) { executable_.apply(update); }

 private:
  void keep_for_next_step(comm::FloatBuffer sum);

  backend::Executable& executable_;
  comm::Communicator& comm_;
  comm::ReductionShape shape_;
  GradientCompressor* compressor_;        // null: gradients travel as they are
  const std::vector<FloatRange> parts_;   // of a contribution that the executable leaves on a GPU
  std::unique_ptr<NormMeeting> meeting_;  // null: norms count over a shard
  std::function<void()> sign_of_life_;
  // The reduction under way: between GPUs, or of contributions on the host. Neither: the executable adds up itself.
  std::unique_ptr<comm::DeviceReduction> on_device_;
  std::unique_ptr<comm::Reduction> on_host_;
  comm::Reduced reduced_;
  comm::FloatBuffer room_;        // for a sum that no reduction holds as a whole
  backend::StepMetrics metrics_;  // of the sum
};

}  // namespace dtrain::train
