// The membership of a job, as a training run sees it: a sequence of generations, entered and left at agreed points. The
// trainer makes all calls from one thread; implementations may have more threads inside.
//
// One generation, seen from the trainer:
//   enter() -> communicator; state is brought to the same cursor on all ranks; entered();
//   each step: vote() goes into the reduction's note; after the reduction begin_apply(), apply, end_apply();
//   judge(notes of all ranks) says go on, or leave this generation because all ranks voted for it.
// PeerLost anywhere in between: lost(), then enter() again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::elastic {

// What a worker is doing, for heartbeats. The limit for a hang depends on the phase.
enum class Phase { building, entering, loading, computing, reducing, applying, evaluating, saving, holding };
const char* phase_name(Phase phase);

// How far the state in this worker's memory is trained: `step` steps of `epoch` are applied. For a worker without state
// (a newcomer) it is where the worker could start by itself: at zero, or at a checkpoint that it can read.
struct TrainingPosition {
  bool has_state = false;
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t samples_seen = 0;
  friend auto operator<=>(const TrainingPosition&, const TrainingPosition&) = default;
};

struct [[nodiscard]] Entry {
  enum class Kind {
    train,       // `communicator` is set
    leave,       // removed from the job: end with exit 0
    stop,        // the job ends now, resumable
    checkpoint,  // like stop, and this worker saves its state first
  };
  Kind kind = Kind::leave;
  std::uint64_t generation = 0;
  std::unique_ptr<comm::Communicator> communicator;
  std::string reason{};              // for the user
  std::vector<std::string> hosts{};  // by rank; several ranks may share one; empty: not known
};

enum class Verdict {
  go_on,
  change,  // every rank leaves the generation here: enter() gives the next one
  stop,    // every rank stops here; rank 0 saves a checkpoint; the job is resumable
};

class Membership {
 public:
  virtual ~Membership() = default;

  // Reports a hash of what this worker computes from samples that are the same on all workers, before the first
  // enter(). The coordinator refuses a worker with another hash. Empty: not compared.
  virtual void probed(const std::string& hash) = 0;
  // Blocks until the coordinator says what this worker does next. The first call reports that the model is built and
  // warm. The communicator of the previous generation must be destroyed or aborted.
  virtual Entry enter(const TrainingPosition& position) = 0;
  // Reports that all ranks of the generation hold the same state, and that training continues from it.
  virtual void entered(const TrainingPosition& position) = 0;

  // This worker's vote, for word 0 of the note of the next reduction or gathering.
  [[nodiscard]] virtual std::uint64_t vote() = 0;
  // Gives the same answer on every rank, because it depends only on the votes of all ranks in one collective.
  // at_epoch_end: the collective closed an epoch, so changes that wait for one may happen.
  [[nodiscard]] virtual Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) = 0;

  // Throws PeerLost where the generation has ended for this worker: between parts of work that takes long.
  virtual void require_generation() = 0;
  // Enclose the one local phase that cannot be undone. begin_apply() throws PeerLost after a freeze, because the
  // position that this worker reported must stay true. end_apply() reports the new position.
  virtual void begin_apply() = 0;
  virtual void end_apply(const TrainingPosition& position) = 0;

  // Ends the generation for this worker: aborts its communicator and reports the loss to the coordinator.
  virtual void lost(const PeerLost& error) = 0;

  // A sign of progress; cheap, may be called at every change of phase. While shards are computed, from any thread.
  virtual void progress(Phase phase) = 0;
  // The part of each step that this worker computes from now on, for the speeds of hosts.
  virtual void computes(double share) = 0;
  // Adds an event to the job's log, on rank 0 only: an object with "event" (see train/report_json).
  virtual void report(const Json& event) = 0;
};

// One generation without changes: it ends with the first PeerLost (rethrown from lost(), unless a stop signal came
// before it) or a stop signal.
std::unique_ptr<Membership> make_fixed_membership(std::unique_ptr<comm::Communicator> communicator);

}  // namespace dtrain::elastic
