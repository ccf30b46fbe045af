// The rules of an elastic job as a pure function: state, event and time -> new state and actions, without clock, socket
// or file. The Coordinator feeds it and carries out its actions in order.
//
// elastic/protocol.hpp shows the messages. Rules worth knowing:
// - A planned change is begun when newcomers are ready or members are to leave. Until all its members are connected it
//   can be abandoned without any effect on training. Numbers of abandoned generations are never used again.
// - Old members get Commit with the boundary. Newcomers get Commit{now} at the first sign that an old member has
//   switched, so that no worker waits in a collective for an epoch to end.
// - A failure freezes all members; those that answer continue in a new generation at once.
// - Messages from evicted or unknown workers, and about other generations, change nothing.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/elastic/records.hpp>

#include "state.hpp"

namespace dtrain::elastic {

// Events.
struct HostsWanted {  // the whole list; the first one begins the job, except after a takeover
  std::vector<HostLine> hosts;
  bool by_person = false;                  // from a command of dtrain, not from an edit: may remove any number
  std::vector<std::string> doubtful = {};  // as HostList: a missing host that may be meant by one of these stays
};
struct Drain {  // the host leaves at the next step and stays in the file
  std::string host;
  std::string reason;
};
struct Undrain {  // drained hosts come back
  std::vector<std::string> hosts;
};
struct StopAsked {
  std::string reason;
  bool at_once = false;  // kill, without a checkpoint
  ExitCode exit_code = ExitCode::resumable;
  bool save = true;  // the weights are worth a checkpoint
};
struct TiebreakerAnswered {  // the answer to AcquireTiebreaker
  Generation generation = 0;
  bool won = false;
};
struct Tick {};  // time has passed: feed a few each second
using Event = std::variant<HostsWanted, HostUp, HostDown, HostKnows, AdmissionChecked, HostNotice, WorkerSays,
                           WorkerExited, Drain, Undrain, StopAsked, TiebreakerAnswered, Tick>;

// Actions, to be carried out in this order. The first six are calls of AgentPool. A JournalEntry is written to the
// GenerationJournal before the actions after it are carried out.
struct StartHost {
  HostLine host;
};
struct RunAdmissionCheck {
  std::string host;
};
struct StartWorker {
  std::string host;
  int slot = 0;
  WorkerId worker = 0;
};
struct Send {  // one message to many: a Prepare of a thousand members is built once
  std::vector<WorkerId> to;
  ToWorker message;
};
struct KillWorker {
  WorkerId worker = 0;
  bool dump_stack = false;
};
struct EndHost {
  std::string host;
};
struct AnnounceVoters {  // which agents may vote from this generation on
  Generation generation = 0;
  bool committed = false;
  std::vector<Member> members;
};
struct AcquireTiebreaker {  // allows exactly half of the voters to act: see acquire_tiebreaker()
  Generation generation = 0;
};
struct LogMembership {  // a line of host_worker_log
  bool added = false;
  std::string host;
};
struct Emit {  // a line of events.jsonl: {"event": KIND, ...}, see base/event_kind.hpp
  Json event;
};
using Action = std::variant<StartHost, RunAdmissionCheck, StartWorker, Send, KillWorker, EndHost, JournalEntry,
                            AnnounceVoters, AcquireTiebreaker, LogMembership, Emit, Say, Finish>;

struct [[nodiscard]] Decision {
  State state;
  std::vector<Action> actions;
};

Decision decide(State state, const Event& event, Time now);

// The state and the first actions of a coordinator that takes over. All workers stay alive; they freeze and continue in
// a new generation as after a failure, which settles changes that were in progress. The hosts stay those of the lists
// that were accepted, as the records and the agents know them; a list that comes later is an edit like any other.
Decision recover_state(const Policy& policy, const Origin& origin, const TakeoverState& takeover, Time now);

// True when this coordinator may write to the job folder: enough voters answered so lately that no other coordinator
// can lead.
[[nodiscard]] bool leads(const State& state,
                         const std::function<std::size_t(const std::vector<std::string>& hosts)>& answered);

}  // namespace dtrain::elastic
