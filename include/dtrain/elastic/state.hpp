// What the coordinator knows about its job: plain values, changed by decide() alone, moved in and out of it. Moving a
// State costs nothing; copying one is for tests.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/circle.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::milliseconds;

// A member's phase may last as long as this. Once the job's own times are known, also as long as hang_factor median
// steps, or as hang_factor / 4 of its longest evaluation or save.
struct HangFloors {
  Duration loading{20'000};
  Duration computing{20'000};    // and applying
  Duration first_step{120'000};  // all of these, until the worker has finished a step
  Duration evaluating{60'000};
  Duration saving{300'000};
  Duration waiting{60'000};  // in a phase that waits for others: then the one that is behind is to blame
};

// Who has to pass the gate of elastic/gate.hpp: hosts that come while the job runs, or those of its start too.
enum class GateFor { nobody, newcomers, everybody };

// Constant for a job.
struct Policy {
  bool elastic = false;                 // false: the first failure ends the job, and the host file is read once
  Boundary boundary = Boundary::epoch;  // of joins and leaves; failures and drains act at the next step
  int min_workers = 1;                  // fewer: those left hold their state and wait
  int max_workers = std::numeric_limits<int>::max();  // more: spares
  bool allow_mass_remove = false;                     // an edit by hand may remove more than half of the hosts
  bool allow_mixed_hardware = false;                  // workers of another fingerprint may join
  GateFor gate = GateFor::nobody;
  int failure_limit = 100;   // failed workers of a job, then it stops
  int fruitless_limit = 10;  // recoveries in a row without a step between them, then it stops

  Duration between_changes{250};      // generations begin at least so far apart: what arrives meanwhile is one change
  Duration gather{30'000};            // the first generation waits so long for slow workers, from when it has enough
  Duration replace_wait{120'000};     // a host that an edit replaces stays so long for its replacement
  Duration host_timeout{60'000};      // StartHost to HostUp
  Duration gate_timeout{3'700'000};   // TryGate to GateTried
  Duration hello_timeout{30'000};     // StartWorker to Hello
  Duration prepare_timeout{600'000};  // Hello to Ready
  Duration mesh_timeout{15'000};      // Prepare to the last Meshed
  Duration freeze_timeout{5'000};     // Freeze to the last Frozen
  Duration heartbeat_timeout{3'000};  // without any message from a worker that said Hello
  Duration leave_timeout{30'000};     // Leave to the end of the process; a worker that is done has as long
  Duration stop_timeout{300'000};     // Stop to the end of the last process
  Duration kill_timeout{15'000};      // KillWorker to WorkerExited, EndHost to HostDown: then the host counts as lost
  Duration hold_timeout{600'000};     // below min_workers: then a checkpoint and exit 75
  bool quorum = false;                // agents outlive their coordinator: see Electorate

  double hang_factor = 20;
  HangFloors hang_floors;
  Duration quarantine_base{5'000};  // after a host's first failure; doubles with each
  Duration quarantine_cap{600'000};
  Duration forgive_after{600'000};  // a member for so long: its host's failures are forgotten
  double straggler_factor = 1.5;    // of the median compute time of a step
};

// The agent of a host.
enum class AgentState { none, starting, up, ending };

// The gate of a host, since its agent was started.
enum class Gate { closed, trying, open };

struct Host {
  HostLine line;
  bool wanted = false;   // stands in the host list
  bool drained = false;  // stands there, but somebody asked it to go; ends when the line is removed
  bool noticed = false;  // drained because it goes soon, whatever the job wants
  bool logged = false;   // host_worker_log says ADDED and no REMOVED after it
  bool said_spare = false;
  std::string drain_reason;
  std::uint64_t edit = 0;  // the edit that made it wanted or unwanted
  Time edited{};

  AgentState agent = AgentState::none;
  Time agent_since{};
  std::string address;   // numeric, once the agent was up
  Generation knows = 0;  // the newest generation that its agent, since it is up, has heard of

  Gate gate = Gate::closed;
  Time gate_since{};

  int failures = 0;  // since the last forgiveness
  Time quarantined_until{};
  std::string last_failure;     // empty: none
  std::string next_command;     // what a person may do about it; empty: remove the host
  std::vector<WorkerId> slots;  // process by slot, also one that is on its way out; 0: none
  std::size_t allotted = 0;     // slots that may be used: fewer than line.slots above max_workers
};

enum class WorkerPhase {
  starting,   // asked for; no Hello yet
  preparing,  // builds its model
  ready,      // waits for a generation
  member,     // of the current one
  leaving,    // told to go, or its last message was Left
  ending,     // evicted: its messages are ignored until the process is gone
};

struct Worker {
  WorkerId id = 0;
  std::string host;
  int slot = 0;
  WorkerPhase phase = WorkerPhase::starting;
  Time since{};  // of the phase
  std::int64_t pid = 0;
  comm::PeerAddress data;
  std::string fingerprint;

  Time heard{};       // its last message
  Standing standing;  // as last told
  Progress progress;  // its last heartbeat
  Time progress_at{};
  Generation invited = 0;    // the newest that it is to be a member of
  Generation entered = 0;    // of its last Entered; 0: none
  Generation meshed = 0;     // of its last Meshed
  std::string mesh_failure;  // of that; empty: none
  Generation frozen = 0;     // cannot apply in this generation or an older one
  bool stepped = false;      // finished a step as a member
  bool told_leave = false;
  std::optional<Left> left;
  double compute_seconds = 0;  // of a step, smoothed
  bool said_straggler = false;
};

// When a change of generation went through its stations; unset: not yet, or it had none.
struct Timeline {
  std::optional<Time> cause;     // the last sign of life of who failed, or the event that made the change wanted
  std::optional<Time> noticed;   // by the coordinator
  std::optional<Time> begun;     // Prepare
  std::optional<Time> meshed;    // all
  std::optional<Time> switched;  // first sign of a worker in the new generation
  std::optional<Time> entered;   // all
  std::optional<Time> stepped;   // first finished step
};

// A generation: on its way, or the current one.
struct Roster {
  Generation number = 0;
  std::vector<WorkerId> members;  // by rank
  std::vector<WorkerId> leaving;  // members of the one before that are not in this one
  Boundary boundary = Boundary::step;
  std::string reason;
  std::size_t awaited = 0;  // Meshed, later Entered, from so many
  bool committed = false;
  bool stepped = false;             // it trained: a step was finished in it
  std::optional<Standing> start{};  // where it began to train
  Timeline times{};
};

// The circle of a generation, by hosts. Another coordinator may come when more than half of it wants one, so this one
// goes on only with more than half of it: exactly half is enough with a claim.
struct Electorate {
  Generation generation = 0;
  std::vector<std::string> hosts;
  bool claimed = false;
  Time asked{};  // for the claim
};

// The current generation is ending or has ended without an agreed point: its members freeze, then hold.
struct Freezing {
  Generation number = 0;  // they freeze in it and in all older ones
  std::string reason;
  std::size_t awaited = 0;  // Frozen from so many
  Time since{};
  std::optional<Time> holding_since{};  // too few workers to go on
  Timeline times{};
};

// What was the first thing to go wrong: the cause that people look for.
struct Failure {
  WorkerId worker = 0;  // 0: the host itself
  std::string host;
  int rank = -1;  // -1: it was no member
  Generation generation = 0;
  std::string reason;  // with signal or exit code
  std::vector<std::string> last_lines{};
  int exit_code = 0, signal = 0;  // of its process, once it is known; 0 and 0: not yet
  bool unreachable = false;       // no agent could be started there
};

// The job ends: first politely (Stop or Leave is sent), then by force, then the agents go, then Finish.
struct Ending {
  enum class Stage { asked, killed, agents, finished };
  Stage stage = Stage::asked;
  Time since{};  // of the stage
  ExitCode exit_code = ExitCode::ok;
  std::string reason;
};

// What this job has shown to be normal.
struct Pace {
  std::array<double, 64> steps{};  // seconds of recent steps, a ring
  std::size_t steps_seen = 0;
  double evaluating = 0, saving = 0;  // seconds, the longest that ended well
};

struct State {
  Policy policy;
  std::map<std::string, Host> hosts;   // by name: those wanted, and those that are not quite gone
  std::vector<std::string> order;      // names of the wanted, as in the file
  std::map<WorkerId, Worker> workers;  // every process that was asked for and is not known to be gone

  std::optional<Roster> current;
  std::optional<Roster> change;
  std::optional<Freezing> freezing;
  std::optional<Ending> ending;
  // Of the last committed generation; after a takeover also of those that may have been committed. Empty without
  // quorum.
  std::vector<Electorate> electorates;
  std::optional<Time> cut_off{};  // since when there are too few agents

  // Both only grow, across restarts of the coordinator too.
  Generation next_generation = 1;
  WorkerId next_worker = 1;
  WorkerId reserved_workers = 1;  // the journal says that those below may be in use
  std::uint64_t edits = 0;        // host lists accepted

  std::optional<Failure> first_failure;
  int failures = 0;
  int mesh_attempts = 0;    // failed ones in a row
  Standing furthest;        // that a member ever reached
  int fruitless = 0;        // recoveries since it was reached
  std::string fingerprint;  // of the first worker
  std::string probe;        // of the first one that told one
  Pace pace;
  Time begun{};  // the job
  bool said_waiting = false;
  std::optional<Time> gathering_since;  // enough workers are ready, slower ones are waited for
  Time last_change{};                   // when the last generation was begun
  Time not_before{};                    // the next planned change: a failed one is not repeated at once
  Time last_tick{};
  Time heard_floor{};  // silence counts from here: the coordinator itself was held up until then
};

// A State to begin with. `logged` are the hosts that host_worker_log calls ADDED.
struct Origin {
  Generation next_generation = 1;
  WorkerId next_worker = 1;
  std::vector<std::string> logged;
};
State initial_state(const Policy& policy, const Origin& origin, Time now);

// What a host is to people.
enum class HostPhase { absent, starting, preparing, ready, member, leaving, failed, quarantined, spare, drained };
const char* phase_name(HostPhase phase);
HostPhase phase_of(const State& state, const Host& host, Time now);
// Why it is no member, or empty; and the command that changes it, or empty.
struct Explanation {
  std::string reason;
  std::string next;
};
Explanation explain(const State& state, const Host& host, Time now);

// Position in the current generation; nullopt: no member.
std::optional<int> rank_of(const State& state, WorkerId worker);
// compute time of a member's step as a multiple of the median of all members; 1 when unknown.
double straggler_score(const State& state, const Worker& worker);

}  // namespace dtrain::elastic
