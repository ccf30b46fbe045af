// Messages between the coordinator and the workers, one JSON object a frame, carried by the worker's agent. Every
// message about a generation carries its number, and the receiver ignores generations older than those it knows.
//
// A planned change from generation g to g+1:          After a failure in g:
//   coordinator -> Prepare{g+1} to old and new          Exited / Lost{g} arrives, or a worker is judged hung
//   workers     -> Meshed{g+1}, in the background       coordinator -> Freeze{g} to the others
//   coordinator -> Commit{g+1, boundary} to all         workers     -> Frozen{g, position}
//   all vote; at the agreed point they switch           coordinator -> Prepare{g+1}, workers -> Meshed{g+1}
//   workers     -> Entered{g+1, position}               coordinator -> Commit{g+1, now}, workers -> Entered{g+1}
//   removed ones-> Left                                 (the most advanced position wins; others receive its state)
//   newcomers   -> first Progress with a step: ADDED
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::elastic {

using WorkerId = std::uint64_t;  // never used twice in a job; 0: none
using Generation = std::uint64_t;

enum class Boundary { now, step, epoch };

struct Member {
  WorkerId worker = 0;
  std::string host;  // its line in the host file
  int slot = 0;
  comm::PeerAddress data;
  friend bool operator==(const Member&, const Member&) = default;
};

// Their hosts, in their order.
std::vector<std::string> hosts_of(const std::vector<Member>& members);

// From the coordinator to a worker.
struct Prepare {
  Generation generation = 0;
  std::vector<Member> members;  // by rank
};
struct Commit {
  Generation generation = 0;
  Boundary boundary = Boundary::step;
};
struct Freeze {  // this generation and all older ones
  Generation generation = 0;
};
struct Leave {  // the worker is not a member of the committed generation: exit 0
  std::string reason;
};
// Vote to stop at the next step. `save`: a worker that is frozen or holds writes the checkpoint itself.
struct Stop {
  bool save = true;
  std::string reason;
};
// The coordinator's AWS credentials, sent again when they are renewed. The worker's process takes them, not its
// session.
struct UpdateCredentials {
  std::string credentials;  // net::credentials_text(); empty: it has none
};
using ToWorker = std::variant<Prepare, Commit, Freeze, Leave, Stop, UpdateCredentials>;

// From a worker to the coordinator.
struct Hello {  // the process runs and listens
  std::int64_t pid = 0;
  comm::PeerAddress data;
  std::string fingerprint;
};
struct Ready {  // the model is built and warm
  TrainingPosition position;
  std::string probe{};  // Membership::probed()
};
struct Meshed {
  Generation generation = 0;
  std::string failure;    // empty: connected to all members
  bool is_local = false;  // the failure is this worker's own: no thread, no memory or no descriptor is left
};
struct Frozen {
  Generation generation = 0;
  TrainingPosition position;
};
struct Lost {  // a collective failed; the worker is frozen already
  Generation generation = 0;
  TrainingPosition position;
  std::string reason;
};
struct Entered {
  Generation generation = 0;
  TrainingPosition position;
};
struct Progress {  // a heartbeat, sent a few times a second by a thread of its own
  Generation generation = 0;
  Phase phase = Phase::building;
  TrainingPosition position;
  double seconds_in_phase = 0;
  double step_seconds = 0;     // of the last whole step
  double compute_seconds = 0;  // of that step, without waiting for others
  double share = 0;            // of each step, which this worker computes; 0: an equal one
  comm::Traffic traffic{};     // with other ranks, since the process began; zeros: not counted
};
struct Report {  // an observer's event, from rank 0
  Json event;
};
struct AskLeave {  // the worker wants to leave at the next step: SIGTERM, spot notice
  std::string reason;
};
struct Left {  // the last message: how the worker ends
  enum class How { done, removed, stopped, failed };
  How how = How::failed;
  std::string reason;  // for failed: the whole error
  TrainingPosition position;
  // for failed: exit code of the whole job when a new attempt is pointless, also from the weights of the others, which
  // are not saved; 0: the others go on
  int job_exit_code = 0;
  std::vector<std::string> last_lines{};  // of its output, for failed; added by its agent
  std::string hint{};                     // for failed: what to do about it; may be empty
};
using FromWorker = std::variant<Hello, Ready, Meshed, Frozen, Lost, Entered, Progress, Report, AskLeave, Left>;

// {"type": "prepare", ...}. from_json throws DataError for anything else.
Json to_json(const ToWorker& message);
Json to_json(const FromWorker& message);
ToWorker to_worker_from_json(const Json& json);
FromWorker from_worker_from_json(const Json& json);

}  // namespace dtrain::elastic
