// The coordinator decides which workers are members of the job. It feeds events to decide(), carries out its actions
// through an AgentPool, keeps the records in the job folder, and answers requests. One thread makes all calls, and
// callbacks come on that thread.
//
// Requests, {"ask": ...}, and their answers; a failed request is answered by {"error": {"kind", "message", "hint"}}:
//   list                                  -> dtrain.hosts-list/1
//   drain {"host" or "hosts": [names], "reason"?, "any_number"?: bool}
//                                         -> {"ok": true}; the hosts stay in the file. With "any_number" false a drain
//                                            that leaves fewer workers than the job needs is refused
//   stop  {"reason"?, "now"?: bool}       -> {"ok": true}; the job ends resumable, `now`: without a checkpoint
//   edit-hosts {"add": [lines], "remove": [names], "any_number"?: bool, "keep_enough"?: bool}
//                                         -> as hosts-changed, after it wrote the file; "problems" begin with what it
//                                            repaired there. Adding a drained host ends its drain. With
//                                            "keep_enough" a removal that leaves fewer workers than the job needs is
//                                            refused
//   bandwidth {...}                       -> {"ok": true}, when the whole request has arrived: the sender times it
//   hosts-changed                         -> {"ok": true, "problems": [...]}; reads the host file at once, because
//                                            dtrain itself wrote it, and may remove any number of hosts
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/elastic/policy.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {

struct State;

// The time of an event. The caller passes it in, so that tests choose it.
struct Moment {
  Time time{};
  WallTime wall{};
  static Moment now();
};

struct CoordinatorOptions {
  Policy policy;
  Path folder;                             // of the job; must exist
  Path host_file;                          // empty: host_worker in the job folder
  std::chrono::milliseconds settle{2000};  // quiet time after an edit of the host file by hand
  int slots = 1;                           // workers of a host whose line has no slots=
  bool prometheus = false;                 // keep metrics.prom in the job folder up to date
  Term term = 1;                           // for the journal
  Duration lease{2'000};  // validity of an agent's answer; shorter than the silence that starts an election
  std::optional<TakeoverState> takeover;  // set: take over from a coordinator that was lost

  // All may be empty. on_report gets the reports of rank 0; a new rank 0 may repeat the last report of the old one, and
  // train::OnlyNews drops that. on_say gets lines for the user, on_event each event as written to events.jsonl.
  std::function<void(const Json& report)> on_report;
  std::function<void(const Say& line)> on_say;
  std::function<void(const Json& event)> on_event;
};

class Coordinator {
 public:
  // Continues the records in the job folder. The agent pool must outlive this.
  Coordinator(CoordinatorOptions options, AgentPool& agent_pool, Moment now);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;

  // May be called from within a call of the agent pool; the event then waits for the one in progress.
  void feed(AgentPoolEvent event, Moment now);
  // Lets time pass. The first call reads the host file and begins the job; after a takeover it continues with the hosts
  // that the job has. Call it about every 50 ms.
  void tick(Moment now);
  // Stops the job as the `stop` request does.
  void stop(const std::string& reason, bool at_once, Moment now);

  // Writes how the job ended for the user, with its goodput, once it is finished(); nothing after step_down(). The exit
  // code may differ from that of the last decision, because the program that runs the job knows what was saved.
  void record_end(ExitCode exit_code, const std::string& reason, Moment now);

  // Another coordinator leads the job, which continues: this one acts and writes no more.
  void step_down(Term higher);
  bool stepped_down() const;
  // Whether it may write to the job folder at the time of the last call: no other coordinator can lead the job.
  bool may_write() const;

  // Set when no process of the job runs any more, and after step_down().
  const std::optional<Finish>& finished() const;
  // A member has finished a step in the current generation.
  bool is_training() const;
  const std::optional<Failure>& first_failure() const;
  // For tests.
  const State& state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain::elastic
