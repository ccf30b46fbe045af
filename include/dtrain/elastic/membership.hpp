// How a training run sees the membership of its job: a sequence of generations, entered and left at agreed points.
// The trainer calls this from its one thread; what other threads do to it is the implementation's business.
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

// What a worker is doing, for heartbeats: a hang is judged by the phase it happens in.
enum class Phase { building, entering, loading, computing, reducing, applying, evaluating, saving, holding };
const char* phase_name(Phase phase);

// Where the state in this worker's memory stands: `step` steps of `epoch` are applied. Without state (a newcomer) the
// cursor says where the worker could start by itself: at zero or at a checkpoint it can read.
struct Standing {
  bool has_state = false;
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t samples_seen = 0;
  friend auto operator<=>(const Standing&, const Standing&) = default;
};

struct Entry {
  enum class Kind {
    train,       // `communicator` is set
    leave,       // removed from the job: end with exit 0
    stop,        // the job ends now, resumable
    checkpoint,  // like stop, and this worker saves its state first
  };
  Kind kind = Kind::leave;
  std::uint64_t generation = 0;
  std::unique_ptr<comm::Communicator> communicator;
  std::string reason;  // for people
};

enum class Verdict {
  go_on,
  change,  // every rank leaves the generation here: enter() gives the next one
  stop,    // every rank stops here; rank 0 saves a checkpoint; the job is resumable
};

class Membership {
 public:
  virtual ~Membership() = default;

  // What this worker computes of samples that are the same for all, as a hash: before the first enter(). Who computes
  // something else is refused. Empty: nobody compares.
  virtual void probed(const std::string& /*hash*/) {}
  // Blocks until this worker is told what to do next. The first call says that the model is built and warm. The
  // communicator of the generation before must be gone, or dead.
  virtual Entry enter(const Standing& standing) = 0;
  // All ranks of the generation hold the same state now, and training goes on from here.
  virtual void entered(const Standing& standing) = 0;

  // What this worker wants, as a word for word 0 of the note of the next reduction or gathering.
  virtual std::uint64_t vote() = 0;
  // The same answer on every rank, because it depends on what all of them voted in the same collective. at_epoch_end:
  // the collective closed an epoch, so changes that wait for one may happen.
  virtual Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) = 0;

  // Encloses the one local phase that cannot be taken back. begin_apply() throws PeerLost when this worker was frozen:
  // what it reported then must stay true. end_apply() says where the state stands now.
  virtual void begin_apply() = 0;
  virtual void end_apply(const Standing& standing) = 0;

  // The generation is over for this worker. Stops its communicator, and tells the others through the coordinator.
  virtual void lost(const PeerLost& error) = 0;

  // A sign of progress; cheap, may be called at every change of phase.
  virtual void progress(Phase phase) = 0;
  // Something for the job's log, from the rank that speaks for all: an object with "event" (see train/report_json).
  virtual void report(const Json& event) = 0;
};

// One generation that nothing changes: ends with the first PeerLost (rethrown from lost()) or a stop signal.
std::unique_ptr<Membership> make_fixed_membership(std::unique_ptr<comm::Communicator> communicator);

}  // namespace dtrain::elastic
