// The files in the job folder that record a job's membership. One process, the coordinator, writes each of them, and
// continues where the previous coordinator stopped, also after an unfinished line. Failures, for example a full disk,
// throw Error with the path.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/growing_file.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/elastic/protocol.hpp>
#include <dtrain/elastic/voters.hpp>

namespace dtrain::elastic {

using WallTime = std::chrono::system_clock::time_point;

// A file that grows by whole lines. Opening it completes a torn last line with a newline, now or before the first line
// that can be written, and readers skip lines that they cannot parse. A line that cannot be written throws Error and is
// kept: it is written before the next one.
class LineFile {
 public:
  explicit LineFile(Path path, unsigned permissions = 0666);  // of a new file, less the umask
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
  // Hosts whose last line is ADDED, sorted.
  const std::vector<std::string>& present() const { return present_; }
  GrowingFile& file() { return file_.file(); }

 private:
  LineFile file_;
  std::uint64_t next_seq_ = 0;
  std::vector<std::string> present_;
};

// `events.jsonl`: {"seq":0,"time":"2026-01-31T23:59:59.123456Z","event":...}, one object a line. base/event_kind.hpp
// has the kinds.
class EventLog {
 public:
  explicit EventLog(Path path, unsigned permissions = 0666);  // of a new file, less the umask
  // Returns the event as it was written. One that the next coordinator must know is on disk then.
  Json append(const Json& event, WallTime time);
  GrowingFile& file() { return file_.file(); }

 private:
  LineFile file_;
  std::uint64_t next_seq_ = 0;
};
// All readable events, oldest first; empty when there is no such file.
std::vector<Json> read_events(const Path& path);
std::string format_time(WallTime time);  // UTC, microseconds

// `journal.jsonl`: the generations that were begun and committed, and the numbers in use.
struct JournalEntry {
  Generation generation = 0;
  bool committed = false;
  WorkerId next_worker = 1;
  std::vector<Member> members;  // by rank, when committed
};
class GenerationJournal {
 public:
  // Skips entries that a coordinator of an older term wrote after a newer one.
  explicit GenerationJournal(Path path);
  // Entries belong to this term from now on.
  void begin_term(Term term);
  Term term() const { return term_; }  // the highest
  // A commit is on disk when this returns.
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
