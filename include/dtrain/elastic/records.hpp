// The files in the job folder that tell a job's membership. Each is written by one process, the coordinator; each
// continues where the coordinator before it stopped, also after a line that it did not finish. Errors are Error with
// the path: a full disk, for example.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

using WallTime = std::chrono::system_clock::time_point;

// A file that grows by whole lines: one O_APPEND write each. A torn last line is completed by a newline when it is
// opened, and readers pass over what they cannot read.
class LineFile {
 public:
  explicit LineFile(Path path);
  void append(const std::string& line, bool sync);
  const Path& path() const { return path_; }

 private:
  Path path_;
  FileDescriptor fd_;
};

// `host_worker_log`: SEQ ADDED|REMOVED HOST NANOSECONDS, one fsync a line.
class MemberLog {
 public:
  explicit MemberLog(Path path);
  void append(bool added, const std::string& host, WallTime time);
  std::uint64_t next_seq() const { return next_seq_; }
  // Hosts whose last line says ADDED, sorted.
  const std::vector<std::string>& present() const { return present_; }

 private:
  LineFile file_;
  std::uint64_t next_seq_ = 0;
  std::vector<std::string> present_;
};

// `events.jsonl`: {"seq":0,"time":"2026-01-31T23:59:59.123456Z","event":...}, one object a line.
class EventLog {
 public:
  explicit EventLog(Path path);
  // Returns what was written.
  Json append(const Json& event, WallTime time);

 private:
  LineFile file_;
  std::uint64_t next_seq_ = 0;
};
// All events whose line can be read, oldest first. None when there is no such file.
std::vector<Json> read_events(const Path& path);
std::string format_time(WallTime time);  // UTC, microseconds

// `journal.jsonl`: the generations that were begun and committed, and which numbers are used.
struct JournalEntry {
  Generation generation = 0;
  bool committed = false;
  WorkerId next_worker = 1;
  std::vector<Member> members;  // by rank, when committed
};
class GenerationJournal {
 public:
  explicit GenerationJournal(Path path);
  // Commits are on disk when it returns.
  void append(const JournalEntry& entry);
  Generation next_generation() const { return next_generation_; }
  WorkerId next_worker() const { return next_worker_; }
  // Members of the last committed generation, by rank.
  const std::vector<Member>& members() const { return members_; }

 private:
  LineFile file_;
  Generation next_generation_ = 1;
  WorkerId next_worker_ = 1;
  std::vector<Member> members_;
};

}  // namespace dtrain::elastic
