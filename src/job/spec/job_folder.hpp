// The files of a job that commands know: who coordinates it, and which hosts it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/host_file.hpp>

namespace dtrain::job {

struct JobFolder {
  Path path;
  Path hosts() const { return path / "host_worker"; }
  Path log() const { return path / "host_worker_log"; }
  Path events() const { return path / "events.jsonl"; }
  Path steps() const { return path / "steps.jsonl"; }
  Path logs() const { return path / "logs"; }
  Path ledger() const { return path / "ledger"; }
  Path latest() const { return path / "latest_checkpoint"; }  // names the manifest of the newest one of this run
  Path known_hosts() const { return path / "known_hosts"; }
  Path coordinator() const { return path / "coordinator.json"; }
  Path lock() const { return path / "coordinator.lock"; }
};

// What every host gets before its agent starts (--sync-dst-dir).
struct SyncedFolder {
  std::string to{};     // empty: nothing
  Path from{};          // on the coordinator's machine
  bool shared = false;  // on the job folder's file system there, which other machines may see as well
};

// What `coordinator.json` says; only its owner may read it, because it holds the token.
struct CoordinatorFile {
  std::int64_t pid = 0;
  std::string host{};                    // the machine's name
  std::vector<std::string> addresses{};  // numeric, the likeliest first: which of them lead there depends on who asks
  std::uint16_t port = 0;
  bool over_ssh = false;  // how agents are started
  SyncedFolder sync{};
  std::string token{};     // empty once the job is over
  std::uint64_t term = 0;  // of the coordinators of this job, one after the other
  bool survives = false;   // when it is lost, another one comes
  std::string ended{};     // how the job ended; empty: it did not, or nobody could say
  bool over() const { return !ended.empty(); }
};

// nullopt: there is no such file. Throws DataError for one that is damaged.
std::optional<CoordinatorFile> read_coordinator(const JobFolder& folder);
void write_coordinator(const JobFolder& folder, const CoordinatorFile& file);

// Held by one process at a time, and free again when that one ends in whatever way.
class FileLock {
 public:
  // nullopt: another process has it. Throws Error when the file cannot be made.
  static std::optional<FileLock> take(const Path& path);

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// For as long as it lives this process coordinates the job. Throws Error naming the one that does so already.
FileLock coordinate(const JobFolder& folder);
// A process that lives holds the lock.
bool is_coordinated(const JobFolder& folder);

}  // namespace dtrain::job
