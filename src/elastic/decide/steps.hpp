// What the files of this folder offer each other, in the order in which a job meets it.
#pragma once

#include "turn.hpp"

namespace dtrain::elastic {

// hosts.cpp: which hosts and processes there should be.
void accept_hosts(Turn& turn, const HostsWanted& wanted);
void drain_host(Turn& turn, const std::string& name, const std::string& reason);
// The same, because the machine or its process goes soon: too few without it is the end of the job, not a wait.
void take_notice(Turn& turn, const HostNotice& notice);
// Of these workers one is on a host that goes soon.
bool somebody_has_notice(const State& state, std::span<const WorkerId> workers);
void host_up(Turn& turn, const HostUp& up);
void host_down(Turn& turn, const HostDown& down);
// Starts what is missing and dismisses what is too much.
void settle_hosts(Turn& turn);
// A host that was asked to go and trains no more is logged as REMOVED.
void note_gone(Turn& turn, Host& host);

// gate.cpp: what a host must pass before its first worker.
// Whether workers may be started there; if not, it is being found out.
bool pass_gate(Turn& turn, Host& host);
void gate_tried(Turn& turn, const GateTried& tried);
void watch_gates(Turn& turn);

// allotment.cpp: how many slots of each host may be used.
void allot_slots(State& state, Time now);

// messages.cpp: what workers say.
void worker_says(Turn& turn, const WorkerSays& says);
void note_hello(Turn& turn, Worker& worker, const Hello& hello);

// change.cpp: the next generation, from Prepare to the first step.
// Begins a change when there is one to make and one may be made.
void consider_change(Turn& turn);
void on_meshed(Turn& turn, Worker& worker, const Meshed& meshed);
void on_entered(Turn& turn, Worker& worker, const Entered& entered);
// A message that could only be sent in generation `number`.
void sign_of(Turn& turn, const Worker& worker, Generation number);
// A member finished a step in the current generation.
void on_step(Turn& turn, Worker& worker);
// Gives the change up, if it is not committed; the number is spent.
void abandon_change(Turn& turn, const std::string& reason);
// Somebody did not connect to the others.
void mesh_failed(Turn& turn);
// The process is not needed any more, or not yet: it may go.
void dismiss(Turn& turn, Worker& worker, const std::string& reason);

// Everybody is connected, and enough agents know of it.
void commit_when_known(Turn& turn);

// quorum.cpp: whether this coordinator may go on.
// Enough agents are there; where exactly half are, it asks for the claim. Says so when it changes.
bool has_quorum(Turn& turn);
// Enough agents have heard of the change to commit it.
bool change_is_known(const State& state);
// The agents are told who has a say from this generation on.
void convene(Turn& turn, Generation generation, bool committed, const std::vector<Member>& members);
void host_knows(Turn& turn, const HostKnows& knows);
void claim_answered(Turn& turn, const ClaimAnswered& answered);

// compose.cpp: who is in the next generation.
struct Cast {
  std::vector<WorkerId> members{};  // by rank
  std::vector<WorkerId> leaving{};
  Boundary boundary = Boundary::now;
  std::string reason{};
  std::optional<Time> cause{};
};
// A change of the generation that runs; nullopt: none is wanted, or not yet.
std::optional<Cast> cast_planned(Turn& turn);
// Where none runs: before the first one, and after a failure. nullopt: too few.
std::optional<Cast> cast_fresh(Turn& turn);

// failure.cpp: what goes wrong, and the freeze that follows.
enum class Remains { process, nothing };
struct Fault {
  std::string reason;
  Remains remains = Remains::process;
  bool hung = false;   // its stacks are worth a look
  bool exits = false;  // by itself, with an exit code that people want to see
  std::vector<std::string> last_lines{};
};
struct Loss {
  WorkerId worker = 0;
  Fault fault{};
};
// These workers are out of the job, by force where needed; their hosts are quarantined.
void lose_workers(Turn& turn, const std::vector<Loss>& losses);
void lose_worker(Turn& turn, WorkerId id, const Fault& fault);
void lose_host(Turn& turn, Host& host, const std::string& reason);
// No worker of it is concerned: it is quarantined, and nothing else happens.
void fail_host(Turn& turn, Host& host, const std::string& reason);
void worker_exited(Turn& turn, const WorkerExited& exited);
// Forgets a worker whose process is gone.
void erase_worker(Turn& turn, WorkerId id);
// Members that have not said that they are frozen in the generation that ends.
std::vector<WorkerId> thawed_members(const State& state);
// Ends the current generation wherever its members are.
void begin_freeze(Turn& turn, const std::string& reason, std::optional<Time> cause);
void on_frozen(Turn& turn, Worker& worker, Generation number, const Standing& standing);

// health.cpp: deadlines, silence, hangs, stragglers.
void watch(Turn& turn);
void note_progress(Turn& turn, Worker& worker, const Progress& progress);

// ending.cpp: how the job ends.
void begin_stop(Turn& turn, const std::string& reason, ExitCode exit_code);
void end_at_once(Turn& turn, const std::string& reason, ExitCode exit_code);
void on_done(Turn& turn, Worker& worker, const Standing& standing);
// What a worker that froze while the job ends is told.
void stop_frozen(Turn& turn);
void continue_ending(Turn& turn);

}  // namespace dtrain::elastic
