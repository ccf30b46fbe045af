// The files in the job folder that tell a job's membership. Each is written by one process, the coordinator; each
// continues where the coordinator before it stopped, also after a line that it did not finish. Errors are Error with
// the path: a full disk, for example.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/growing_file.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/elastic/circle.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

using WallTime = std::chrono::system_clock::time_point;

// A file that grows by whole lines. A torn last line is completed by a newline when it is opened, and readers pass over
// what they cannot read. A line that cannot be written is an Error and kept: it comes before the next one.
class LineFile {
 public:
  explicit LineFile(Path path);
  void append(const std::string& line, bool sync);
  GrowingFile& file() { return file_; }
  const Path& path() const { return file_.path(); }

 private:
  GrowingFile file_;
};

// `host_worker_log`: SEQ ADDED|REMOVED HOST NANOSECONDS, one fsync a line.
class MemberLog {
 public:
  explicit MemberLog(Path path);
  void append(bool added, const std::string& host, WallTime time);
  std::uint64_t next_seq() const { return next_seq_; }
  // Hosts whose last line says ADDED, sorted.
  const std::vector<std::string>& present() const { return present_; }
  GrowingFile& file() { return file_.file(); }

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
  GrowingFile& file() { return file_.file(); }

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
  // What a coordinator of an older term wrote after a newer one is passed over.
  explicit GenerationJournal(Path path);
  // Entries are of this term from now on.
  void begin_term(Term term);
  Term term() const { return term_; }  // the highest
  // Commits are on disk when it returns.
  void append(const JournalEntry& entry);
  Generation next_generation() const { return next_generation_; }
  WorkerId next_worker() const { return next_worker_; }
  // Members of the last committed generation, by rank.
  const std::vector<Member>& members() const { return members_; }
  GrowingFile& file() { return file_.file(); }

 private:
  LineFile file_;
  Term term_ = 0;
  Generation next_generation_ = 1;
  WorkerId next_worker_ = 1;
  std::vector<Member> members_;
};

}  // namespace dtrain::elastic
