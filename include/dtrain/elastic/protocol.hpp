// What coordinator and workers say to each other, one JSON object a frame, carried by the worker's agent. Every message
// about a generation carries its number; the receiver refuses older ones than it knows.
//
// A planned change from generation g to g+1:          After a failure in g:
//   coordinator -> Prepare{g+1} to old and new          Exited / Lost{g} arrives, or a worker is judged hung
//   workers     -> Meshed{g+1}, in the background       coordinator -> Freeze{g} to the others
//   coordinator -> Commit{g+1, boundary} to all         workers     -> Frozen{g, standing}
//   all vote; at the agreed point they switch           coordinator -> Prepare{g+1}, workers -> Meshed{g+1}
//   workers     -> Entered{g+1, standing}               coordinator -> Commit{g+1, now}, workers -> Entered{g+1}
//   removed ones-> Left                                 (the most advanced standing wins; others receive its state)
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

using WorkerId = std::uint64_t;  // never used twice in a job; 0 is nobody
using Generation = std::uint64_t;

enum class Boundary { now, step, epoch };

struct Member {
  WorkerId worker = 0;
  std::string host;  // its line in the host file
  int slot = 0;
  comm::PeerAddress data;
  friend bool operator==(const Member&, const Member&) = default;
};

// Coordinator to worker.
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
struct Leave {  // not a member of the generation that was committed, or of none: exit 0
  std::string reason;
};
struct Stop {  // vote to stop at the next step; `save`: a worker that is frozen or holds writes the checkpoint itself
  bool save = true;
  std::string reason;
};
struct Lend {  // the coordinator's AWS credentials, again when they are new; not for the session but for its process
  std::string credentials;  // net::credentials_text(); empty: it has none
};
using ToWorker = std::variant<Prepare, Commit, Freeze, Leave, Stop, Lend>;

// Worker to coordinator.
struct Hello {  // the process runs and listens
  std::int64_t pid = 0;
  comm::PeerAddress data;
  std::string fingerprint;
};
struct Ready {  // the model is built and warm
  Standing standing;
  std::string probe{};  // Membership::probed()
};
struct Meshed {
  Generation generation = 0;
  std::string failure;  // empty: connected to everybody
};
struct Frozen {
  Generation generation = 0;
  Standing standing;
};
struct Lost {  // a collective failed; the worker is frozen already
  Generation generation = 0;
  Standing standing;
  std::string reason;
};
struct Entered {
  Generation generation = 0;
  Standing standing;
};
struct Progress {  // a heartbeat, sent a few times a second by a thread of its own
  Generation generation = 0;
  Phase phase = Phase::building;
  Standing standing;
  double seconds_in_phase = 0;
  double step_seconds = 0;     // of the last whole step
  double compute_seconds = 0;  // of it, without waiting for others
};
struct Report {  // an observer's event of the rank that speaks for all
  Json event;
};
struct AskLeave {  // SIGTERM to a worker, a spot notice: let me go at the next step
  std::string reason;
};
struct Left {  // the last message: how the worker ends
  enum class How { done, removed, stopped, failed };
  How how = How::failed;
  std::string reason;  // for failed: the error, whole
  Standing standing;
  // failed, and nobody need try again: how the job ends. 0: the others go on.
  int job_exit_code = 0;
};
using FromWorker = std::variant<Hello, Ready, Meshed, Frozen, Lost, Entered, Progress, Report, AskLeave, Left>;

// {"type": "prepare", ...}. from_json throws DataError for anything that is no such message.
Json to_json(const ToWorker& message);
Json to_json(const FromWorker& message);
ToWorker to_worker_from_json(const Json& json);
FromWorker from_worker_from_json(const Json& json);

}  // namespace dtrain::elastic
