// Functions that the files of this folder offer each other, in the order in which a job meets them.
#pragma once

#include "decision_context.hpp"

namespace dtrain::elastic {

// hosts.cpp: which hosts and processes there should be.
void accept_hosts(DecisionContext& context, const HostsWanted& wanted);
void drain_host(DecisionContext& context, const std::string& name, const std::string& reason);
// Drained hosts of the list are used again.
void end_drains(DecisionContext& context, const std::vector<std::string>& names);
// Drains the host because its machine or process ends soon. Too few workers without it end the job instead of a wait.
void take_notice(DecisionContext& context, const HostNotice& notice);
// At least one of these workers is on a host that ends soon.
bool any_has_notice(const State& state, std::span<const WorkerId> workers);
void host_up(DecisionContext& context, const HostUp& up);
void host_down(DecisionContext& context, const HostDown& down);
// Starts missing processes and dismisses surplus ones.
void settle_hosts(DecisionContext& context);
// Logs a host as REMOVED when it was asked to leave and does not train any more.
void note_gone(DecisionContext& context, Host& host);

// admission.cpp: the admission check before a host's first worker.
// True when workers may be started on the host; otherwise the check is started or in progress.
bool pass_admission_check(DecisionContext& context, Host& host);
void admission_checked(DecisionContext& context, const AdmissionChecked& checked);
void watch_admission_checks(DecisionContext& context);

// allotment.cpp: how many slots of each host may be used.
void allot_slots(State& state, Time now);

// messages.cpp: messages of workers.
void worker_says(DecisionContext& context, const WorkerSays& says);
void note_hello(DecisionContext& context, Worker& worker, const Hello& hello);
// Evict a worker that would compute other bits than the job, and return true then. The first worker is the reference.
bool refuse_other_machine(DecisionContext& context, const Worker& worker);
bool refuse_other_probe(DecisionContext& context, const Worker& worker);

// change.cpp: the next generation, from Prepare to the first step.
// Begins a change when one is wanted and possible.
void consider_change(DecisionContext& context);
void on_meshed(DecisionContext& context, Worker& worker, const Meshed& meshed);
void on_entered(DecisionContext& context, Worker& worker, const Entered& entered);
// Handles evidence that the worker is in generation `number`.
void sign_of(DecisionContext& context, const Worker& worker, Generation number);
// A member finished a step in the current generation.
void on_step(DecisionContext& context, Worker& worker);
// Abandons the change unless it is committed; its number is not used again.
void abandon_change(DecisionContext& context, const std::string& reason);
// A member could not connect to the others.
void mesh_failed(DecisionContext& context);
// The change was not committed in time.
void change_is_late(DecisionContext& context);
// An agent that connects during a change may have missed its announcement.
void announce_change_again(DecisionContext& context);
// Dismisses a process that is not needed.
void dismiss(DecisionContext& context, Worker& worker, const std::string& reason);

// Commits when all members are connected and enough agents know of the change.
void commit_when_known(DecisionContext& context);

// quorum.cpp: whether this coordinator may act.
// True when enough agents are up. With exactly half it requests the tie-breaker. Reports changes.
bool has_quorum(DecisionContext& context);
// The reason for a missing quorum, with the hosts that are lost.
std::string why_no_quorum(const State& state);
// Enough agents know of the change to commit it.
bool change_is_known(const State& state);
// Announces to the agents who may vote from this generation on.
void announce_change(DecisionContext& context, Generation generation, bool committed,
                     const std::vector<Member>& members);
void host_knows(DecisionContext& context, const HostKnows& knows);
void tiebreaker_answered(DecisionContext& context, const TiebreakerAnswered& answered);

// select_members.cpp: the members of the next generation.
struct NextMembership {
  std::vector<WorkerId> members{};  // by rank
  std::vector<WorkerId> leaving{};
  Boundary boundary = Boundary::now;
  std::string reason{};
  std::optional<Time> cause{};
};
// For a planned change of the running generation; nullopt: none is wanted, or not yet.
std::optional<NextMembership> select_members_for_change(DecisionContext& context);
// When no generation runs: at the start and after a failure; nullopt: too few workers.
std::optional<NextMembership> select_members_to_start(DecisionContext& context);

// failure.cpp: losses, and the freeze that follows.
enum class ProcessState { running, gone };
struct Fault {
  std::string reason;
  ProcessState process = ProcessState::running;
  bool hung = false;   // dump its stacks first
  bool exits = false;  // by itself, with an exit code for the user
  std::string hint{};  // for the user, where the job ends by it
  std::vector<std::string> last_lines{};
  std::optional<Time> since{};  // when it ceased to work; unset: with its last message
};
struct Loss {
  WorkerId worker = 0;
  Fault fault{};
};
// Evicts these workers, by force where needed, and quarantines their hosts.
void lose_workers(DecisionContext& context, const std::vector<Loss>& losses);
void lose_worker(DecisionContext& context, WorkerId id, const Fault& fault);
void lose_host(DecisionContext& context, Host& host, const std::string& reason, bool is_fault_of_this_machine = false);
// Quarantines a host without any worker; nothing else happens.
void fail_host(DecisionContext& context, Host& host, const std::string& reason);
void worker_exited(DecisionContext& context, const WorkerExited& exited);
// Forgets a worker whose process is gone.
void erase_worker(DecisionContext& context, WorkerId id);
// Members that have not reported that they are frozen in the ending generation.
std::vector<WorkerId> unfrozen_members(const State& state);
// A member has left by itself: the freeze does not wait for it.
void recount_unfrozen(DecisionContext& context);
// Ends the current generation, wherever its members are.
void begin_freeze(DecisionContext& context, const std::string& reason, std::optional<Time> cause);
void on_frozen(DecisionContext& context, Worker& worker, Generation number, const TrainingPosition& position);

// standing.cpp: training that stands still.
// When the members ceased to work, by what they said last: those that wait for others have waited since then.
Time work_ended(const DecisionContext& context, std::span<const WorkerId> members);
// Tells the user of a pause that lasts, and of its end.
void watch_standing(DecisionContext& context);
void note_further(DecisionContext& context);
bool waits_for_others(Phase phase);

// health.cpp: deadlines, silence, hangs, stragglers.
void watch(DecisionContext& context);
void note_progress(DecisionContext& context, Worker& worker, const Progress& progress);
// The newcomer was heard of lately, so the others may wait for it.
bool newcomer_answers(const DecisionContext& context, const Worker& worker);

// ending.cpp: how the job ends.
// `save`: the weights are worth a checkpoint.
void begin_stop(DecisionContext& context, const std::string& reason, ExitCode exit_code, bool save = true);
void end_at_once(DecisionContext& context, const std::string& reason, ExitCode exit_code);
void on_done(DecisionContext& context, Worker& worker, const TrainingPosition& position);
// Tells workers that froze while the job ends how to end.
void stop_frozen(DecisionContext& context);
void continue_ending(DecisionContext& context);

}  // namespace dtrain::elastic
