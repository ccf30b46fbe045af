// Brings the ranks of a new generation to one state: the furthest one wins, all others receive it from their peers.
#pragma once

#include <optional>
#include <vector>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/transfer_plan.hpp>

#include "run_state.hpp"

namespace dtrain::train {

// Trainer's thread only. All ranks compute the same roles from the same offers, so no rank decides for another. What is
// received lies in a buffer of its own until it is complete and checked; it replaces the executable's state between
// begin_apply() and end_apply(), which a frozen worker does not pass. PeerLost at any point leaves executable and run
// as they were, and the next generation begins again with offers.
class StateSync {
 public:
  // What this worker could start with: the checkpoint, or fresh weights where it is null, for which `training` is asked
  // for images where the graph wants some. `validation` may be null. All must outlive this.
  StateSync(const nn::Graph& graph, backend::Executable& executable, elastic::Membership& membership,
            const TrainerOptions& options, data::Loader& training, const data::Loader* validation,
            const Checkpoint* start);

  bool has_state() const { return has_state_; }
  elastic::TrainingPosition training_position(const RunState& run) const;

  // All ranks call it, each with the run as it stands. Afterwards the executable's state and `run` are the same
  // everywhere; until then both are untouched, but where no rank has state, `run` may be that of a start that was found
  // since. Throws PeerLost; DataError when this rank trains another network, or when no rank can go on from where the
  // run is known to stand (TrainerOptions::lost_start); what TrainerOptions::find_start throws.
  void bring_together(comm::Communicator& comm, RunState& run);

 private:
  struct Offer;
  Offer offer(const RunState& run);
  std::vector<Offer> gather_offers(comm::Communicator& comm, const RunState& run);
  static std::vector<Claim> claims_of(const std::vector<Offer>& offers);
  void find_start(RunState& run);
  static void require_trained(const std::vector<Offer>& offers, const Offer& leader);
  backend::ModelState exchange(comm::Communicator& comm, const Roles& roles, const Offer& from);
  const backend::ModelState& own_state();
  backend::ModelState staging(const Offer& from);

  const nn::Graph& graph_;
  backend::Executable& executable_;
  elastic::Membership& membership_;
  const TrainerOptions& options_;
  data::Loader& training_;
  const data::Loader* const validation_;
  RunStart start_;
  // Until this worker has state: what it could start with. Its memory is the staging buffer when it receives instead.
  std::optional<backend::ModelState> fresh_;
  bool has_state_ = false;
};

}  // namespace dtrain::train
