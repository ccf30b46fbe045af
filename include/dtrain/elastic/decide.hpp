// The heart of an elastic job: what happened and when -> what to do. Pure: no clock, no socket, no file; the same
// arguments give the same decision. The coordinator's runtime feeds it and carries out its actions, in order.
//
// Who may train and when follows elastic/protocol.hpp. Rules worth knowing:
// - A planned change is begun when newcomers are ready or members are to go; until all of it is meshed, it can be
//   abandoned without anybody else noticing. Numbers of abandoned generations are never used again.
// - Old members get Commit with the boundary. Newcomers get Commit{now} at the first sign that an old one has switched,
//   so that nobody waits in a collective for an epoch to end.
// - After a failure all members are frozen, and those that answered go on in a new generation at once.
// - Messages from evicted or unknown workers, and of other generations, change nothing.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/crew.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/elastic/state.hpp>

namespace dtrain::elastic {

// What happened.
struct HostsWanted {  // the whole list; the first one begins the job
  std::vector<HostLine> hosts;
  bool by_person = false;                  // by a command of dtrain, not by an edit: may remove any number
  std::vector<std::string> doubtful = {};  // as HostList: who is missing may only seem to be, and stays
};
struct Drain {  // let this host go at the next step; it stays in the file
  std::string host;
  std::string reason;
};
struct StopAsked {
  std::string reason;
  bool at_once = false;  // kill, without a checkpoint
};
struct ClaimAnswered {  // of a ClaimNext
  Generation generation = 0;
  bool won = false;
};
struct Tick {};  // time has passed: send a few each second
using Event = std::variant<HostsWanted, HostUp, HostDown, HostKnows, GateTried, HostNotice, WorkerSays, WorkerExited,
                           Drain, StopAsked, ClaimAnswered, Tick>;

// What to do, in this order. The first six are calls of elastic::Crew; a JournalEntry goes into the GenerationJournal
// before the actions behind it are carried out.
struct StartHost {
  HostLine host;
};
struct TryGate {
  std::string host;
};
struct StartWorker {
  std::string host;
  int slot = 0;
  WorkerId worker = 0;
};
struct Send {  // the same to all of them: a Prepare of a thousand members is worth building once
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
struct TellCircle {  // who has a say from this generation on
  Generation generation = 0;
  bool committed = false;
  std::vector<Member> members;
};
struct ClaimNext {  // the right to go on with exactly half of the agents: see claim_generation()
  Generation generation = 0;
};
struct LogMembership {  // a line of host_worker_log
  bool added = false;
  std::string host;
};
struct Emit {  // a line of events.jsonl: {"event": KIND, ...}
  Json event;
};
struct Say {  // a line for people
  enum class Kind { note, warning, error };
  Kind kind = Kind::note;
  std::string text;
  std::string hint;  // what to do next; may be empty
};
struct Finish {  // the job is over and nothing of it runs any more; the last action
  ExitCode exit_code = ExitCode::ok;
  std::string reason;
};
using Action = std::variant<StartHost, TryGate, StartWorker, Send, KillWorker, EndHost, JournalEntry, TellCircle,
                            ClaimNext, LogMembership, Emit, Say, Finish>;

struct Decision {
  State state;
  std::vector<Action> actions;
};

Decision decide(State state, const Event& event, Time now);

// What a coordinator that takes over knows: its mandate, and the agents that came with their workers.
struct Inheritance {
  Mandate mandate;
  std::vector<HostReport> hosts;
};
// The state and the first actions of such a coordinator: all workers go on living; they freeze, and go on in a new
// generation as after a failure, so that whatever was half-way is settled. The next event is HostsWanted.
Decision inherit(const Policy& policy, const Origin& origin, const Inheritance& inheritance, Time now);

// It may write to the job folder: so many of these hosts have answered lately that no other coordinator can be.
bool leads(const State& state, const std::function<std::size_t(const std::vector<std::string>& hosts)>& answered);

}  // namespace dtrain::elastic
