// The process that decides membership: feeds what happens to decide(), carries out its actions through a Crew, keeps
// the job folder's records, and answers requests. One thread calls everything, its callbacks included.
//
// Requests, {"ask": ...}, and what answers them; any other answer is {"error": {"kind", "message", "hint"}}:
//   list                                  -> dtrain.hosts-list/1
//   drain {"host", "reason"?}             -> {"ok": true}; the host stays in the file
//   stop  {"reason"?, "now"?: bool}       -> {"ok": true}; the job ends resumable, `now`: without a checkpoint
//   edit-hosts {"add": [lines], "remove": [names], "any_number"?: bool} -> as hosts-changed, after it wrote the file
//   bandwidth {...}                       -> {"ok": true}, once all of it is here: whoever asks takes the time
//   hosts-changed                         -> {"ok": true, "problems": [...]}; reads the host file at once, because
//                                            dtrain itself wrote it, and may remove any number of hosts
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dtrain/elastic/decide.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {

// Passed in by the caller, so that tests choose it.
struct Moment {
  Time time{};
  WallTime wall{};
  static Moment now();
};

struct CoordinatorOptions {
  Policy policy;
  Path folder;                             // of the job; must exist
  Path host_file;                          // empty: host_worker in the folder
  std::chrono::milliseconds settle{2000};  // of an edit of the host file by hand
  int logical_shards = 0;                  // V, for each host's part of the samples a second; 0: equal parts
  int slots = 1;                           // workers of a host whose line does not say
  bool prometheus = false;                 // keep metrics.prom in the folder up to date
  Term term = 1;                           // for the journal
  Duration lease{2'000};                   // of an agent's answer; shorter than the silence that it bears
  std::optional<Inheritance> inheritance;  // set: takes over from a coordinator that was lost

  // All may be empty. What the rank that speaks for all reports (a new one may repeat what the old one said last:
  // train::OnlyNews drops that); lines for people; events as they are written to events.jsonl.
  std::function<void(const Json& report)> on_report;
  std::function<void(const Say& line)> on_say;
  std::function<void(const Json& event)> on_event;
};

class Coordinator {
 public:
  // Continues the records that it finds in the folder. The crew must outlive this.
  Coordinator(CoordinatorOptions options, Crew& crew, Moment now);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;

  // May be called from within a call of the crew: it is dealt with after what is in progress.
  void feed(CrewEvent event, Moment now);
  // Time has passed; the first one reads the host file and begins the job. Call about every 50 ms.
  void tick(Moment now);
  // Politely, as the request does.
  void stop(const std::string& reason, bool at_once, Moment now);

  // Another coordinator is in charge: nothing is done or written any more, and the job goes on without this one.
  void step_down(Term higher);
  bool deposed() const;

  // Set once all is over: nothing of the job runs any more. Also set when this one was deposed.
  const std::optional<Finish>& finished() const;
  // For tests and messages.
  const State& state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain::elastic
