// The records of a job, which its coordinator writes: events, journal and member log.
//
// A record is written only while enough agents have answered (`may_write`), because otherwise another coordinator may
// lead and write; until then it waits. A failed write is reported once, kept in memory and repeated; it never ends the
// job.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/policy.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {

class JobRecords {
 public:
  JobRecords(const Path& folder, std::function<bool()> may_write, std::function<void(const Say&)> say);

  // Writes after all that waits: now, or when it may.
  void record(std::function<void()> write);
  void write_waiting();
  std::size_t waiting() const { return waiting_.size(); }
  void write_now(const std::function<void()>& write);
  // Tells the user of a failure to write, once.
  void complain(const Error& error);
  // Writes what is missing on a disk that was full; about once a second.
  void catch_up(Time now);

  MemberLog& member_log() { return member_log_; }
  EventLog& events() { return events_; }
  GenerationJournal& journal() { return journal_; }

 private:
  const Path folder_;
  const std::function<bool()> may_write_;
  const std::function<void(const Say&)> say_;
  MemberLog member_log_;
  EventLog events_;
  GenerationJournal journal_;
  std::deque<std::function<void()>> waiting_;
  std::set<std::string> complaints_;  // reported failures to write
  bool was_behind_ = false;           // some record could not be written yet
  Time catch_up_due_{};
};

}  // namespace dtrain::elastic
