// What the coordinator knows about its job: plain values that only decide() changes. A State is moved in and out of
// decide(); only tests copy it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/host_phase.hpp>
#include <dtrain/elastic/policy.hpp>
#include <dtrain/elastic/protocol.hpp>
#include <dtrain/elastic/voters.hpp>

#include "../records/pending_requests.hpp"

namespace dtrain::elastic {

// The agent of a host.
enum class AgentState { none, starting, up, ending };

// Result of the admission check since the host's agent was started.
enum class AdmissionState { unchecked, checking, passed };

struct Host {
  HostLine line;
  bool wanted = false;    // in the host list
  bool newcomer = false;  // not in the first host list: AdmissionCheckFor::new_hosts means it
  bool drained = false;   // in the list, but asked to leave; until its line is removed
  bool noticed = false;   // drained because its machine ends soon
  bool logged = false;    // the last line of host_worker_log about it says ADDED
  bool said_spare = false;
  bool said_shared = false;              // that its machine stands under another name too
  std::optional<Time> said_straggler{};  // the last time
  std::string drain_reason;
  std::uint64_t edit = 0;  // number of the edit that added or removed it
  Time edited{};

  AgentState agent = AgentState::none;
  bool agent_ended = false;  // by the coordinator, because no worker is needed there
  Time agent_since{};
  std::string address;   // numeric, known once the agent was up
  Generation knows = 0;  // newest generation that its agent knows since it is up

  AdmissionState admission = AdmissionState::unchecked;
  Time admission_since{};

  int failures = 0;  // since the last forgiveness
  Time quarantined_until{};
  std::string last_failure;     // empty: none
  std::string next_command;     // command that helps the user; empty: remove the host
  std::string forget_key;       // command that helps before that, see StartFailure; empty: none
  std::vector<WorkerId> slots;  // process by slot, also an ending one; 0: none
  std::size_t allotted = 0;     // slots that may be used: max_workers limits line.slots
};

enum class WorkerPhase {
  starting,   // asked for; no Hello yet
  preparing,  // builds its model
  ready,      // waits for a generation
  member,     // in the current generation
  leaving,    // sent Leave, or its last message was Left
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
  std::string probe;  // of its Ready

  Time heard{};               // its last message
  TrainingPosition position;  // as last reported
  Progress progress;          // its last heartbeat
  Time progress_at{};
  std::optional<int> rank;     // as committed for the generation that it is a member of: the losses of others leave it
  Generation invited = 0;      // newest generation that it is to be a member of
  Generation entered = 0;      // generation of its last Entered; 0: none
  std::optional<Time> let_in;  // first of the generations that it was let into since it entered one; unset: it has
  Generation meshed = 0;       // generation of its last Meshed
  std::string mesh_failure;    // in that Meshed; empty: none
  bool mesh_failure_is_local = false;
  Generation frozen = 0;  // cannot apply in this generation or an older one
  bool stepped = false;   // finished a step as a member
  bool sent_leave = false;
  bool sent_stop = false;  // one that forbids to save
  std::optional<Left> left;
  bool lost_weights = false;   // reported that it could not write its last checkpoint
  double compute_seconds = 0;  // of a step, smoothed
  bool said_straggler = false;
};

// When each phase of a change of generation ended; unset: not yet, or the change has no such phase.
struct Timeline {
  std::optional<Time> cause;     // last message of the failed worker, or the event that led to the change
  std::optional<Time> noticed;   // by the coordinator
  std::optional<Time> begun;     // Prepare
  std::optional<Time> meshed;    // all members
  std::optional<Time> switched;  // first sign of a worker in the new generation
  std::optional<Time> entered;   // all members
  std::optional<Time> stepped;   // first finished step
};

// A generation: prepared, or the current one.
struct GenerationPlan {
  Generation number = 0;
  std::vector<WorkerId> members;  // by rank
  std::vector<WorkerId> leaving;  // members of the previous generation that are not in this one
  Boundary boundary = Boundary::step;
  std::string reason;
  std::size_t awaited = 0;  // members whose Meshed, later Entered, is missing
  bool committed = false;
  bool stepped = false;                     // a step was finished in it
  std::optional<TrainingPosition> start{};  // where it began to train
  Timeline times{};
};

// The voters of a generation, by host. More than half of them can elect another coordinator, so this one may act only
// with more than half, or with exactly half and the tie-breaker.
struct VoterHosts {
  Generation generation = 0;
  std::vector<std::string> hosts;
  bool has_tiebreaker = false;
  Time asked{};  // when the tie-breaker was requested
};

// The current generation ends without an agreed point: its members freeze, then hold their state.
struct Freezing {
  Generation number = 0;  // members freeze in it and in all older ones
  std::string reason;
  std::size_t awaited = 0;  // members whose Frozen is missing
  Time since{};
  bool at_takeover = false;
  std::optional<Time> holding_since{};  // set: too few workers to continue
  bool said_holding = false;            // the user has read that no worker is on its way
  bool said_starting = false;           // the same: that workers are on their way
  bool said_long = false;               // the same: that the pause lasts
  Timeline times{};
};

// The end of the job: Stop or Leave is sent, then workers are killed, then the agents end, then Finish.
struct Ending {
  enum class Stage { asked, killed, agents, finished };
  Stage stage = Stage::asked;
  Time since{};  // of the stage
  ExitCode exit_code = ExitCode::ok;
  std::string reason;
  bool save = true;  // the weights are worth a checkpoint
  // Members got Stop while they trained, so each of them saves as soon as it loses the others.
  bool asked_members = false;
  WorkerId saver = 0;  // the frozen member that writes the checkpoint; 0: none yet
  bool saved = false;  // it has left after that, and did not say that it could not write
};

// Durations that are normal for this job.
struct Pace {
  std::array<double, 64> steps{};  // seconds of recent steps, a ring
  std::size_t steps_seen = 0;
  double evaluating = 0, saving = 0;  // seconds, the longest that succeeded
};

struct State {
  Policy policy;
  std::map<std::string, Host> hosts;   // by name: wanted hosts, and others until they are gone
  std::vector<std::string> order;      // names of wanted hosts, as in the file
  std::map<WorkerId, Worker> workers;  // processes that were started and are not known to be gone

  std::optional<GenerationPlan> current;
  std::optional<GenerationPlan> change;
  std::optional<Freezing> freezing;
  std::optional<Ending> ending;
  // Voters of the last committed generation, and after a takeover also of those that may have been committed. Empty
  // without quorum.
  std::vector<VoterHosts> voter_sets;
  std::optional<Time> cut_off{};  // set: too few agents answer, since then

  // Both only grow, also across restarts of the coordinator.
  Generation next_generation = 1;
  WorkerId next_worker = 1;
  WorkerId reserved_workers = 1;  // the journal says that ids below may be in use
  std::uint64_t edits = 0;        // accepted host lists; after a takeover all before it are one

  std::optional<Failure> first_failure;
  int failures = 0;             // workers that failed, and agents that could not be started, in the whole job
  int failures_since_step = 0;  // those that Policy::failure_limit counts, since `furthest` was reached
  int mesh_attempts = 0;        // failed attempts in a row
  TrainingPosition furthest;    // that a member ever reached
  bool trained_before = false;  // members made steps under an earlier coordinator
  int fruitless = 0;            // recoveries since it was reached
  std::string fingerprint;      // of the first worker
  std::string probe;            // of the first worker that reported one
  Pace pace;
  Time last_progress{};        // when a member was last heard to be further than before
  bool said_standing = false;  // training stands still since then
  comm::Traffic traffic{};     // of all workers between each other, by their heartbeats
  Time begun{};                // of the job
  bool said_waiting = false;
  std::optional<Time> start_wait_since;  // enough workers are ready; slower ones are waited for
  Time last_change{};                    // when the last generation was begun
  Time not_before{};                     // earliest time of the next change: a failed one is not repeated at once
  Time last_tick{};
  Time heard_floor{};  // silence counts from here: the coordinator itself was held up until then
};

// What the records in the job folder tell a new coordinator.
struct Origin {
  Generation next_generation = 1;
  WorkerId next_worker = 1;
  std::vector<std::string> logged;  // hosts that host_worker_log calls ADDED
  PendingRequests earlier{};        // for a takeover
};
State initial_state(const Policy& policy, const Origin& origin, Time now);

// The host, as the user sees it.
HostPhase phase_of(const State& state, const Host& host, Time now);
// What the job as a whole does.
enum class JobPhase {
  starting,  // no generation yet
  training,
  stalled,   // the members wait for each other, and none gets further
  changing,  // paused: a lost worker, a takeover
  waiting,   // paused: too few workers
  cut_off,   // paused: too few agents answer
  ending,
};
inline constexpr EnumName<JobPhase> kJobPhaseNames[] = {
    {JobPhase::starting, "starting"}, {JobPhase::training, "training"}, {JobPhase::stalled, "stalled"},
    {JobPhase::changing, "changing"}, {JobPhase::waiting, "waiting"},   {JobPhase::cut_off, "cut_off"},
    {JobPhase::ending, "ending"}};
struct JobStanding {
  JobPhase phase = JobPhase::starting;
  std::string reason{};            // why it does not train; may be empty
  std::optional<Duration> ends{};  // time after which it stops unless that changes
};
// standing.cpp
JobStanding standing_of(const State& state, Time now);

// Why the host is no member, or does not train, and the command that changes it; each may be empty.
struct Explanation {
  std::string reason;
  std::string next;
  std::string forget_key{};  // command to try before `next`, see StartFailure
};
Explanation explain(const State& state, const Host& host, Time now);

// The worker's rank as committed for the current generation; nullopt: no member, or a new coordinator cannot know it.
std::optional<int> rank_of(const State& state, WorkerId worker);

}  // namespace dtrain::elastic
