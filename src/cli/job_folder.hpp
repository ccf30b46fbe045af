// The files of a job that commands know: who coordinates it, and which hosts it has.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/elastic/host_file.hpp>

#include "console.hpp"

namespace dtrain::cli {

struct JobFolder {
  Path path;
  Path hosts() const { return path / "host_worker"; }
  Path log() const { return path / "host_worker_log"; }
  Path events() const { return path / "events.jsonl"; }
  Path logs() const { return path / "logs"; }
  Path ledger() const { return path / "ledger"; }
  Path latest() const { return path / "latest_checkpoint"; }  // names the manifest of the newest one of this run
  Path coordinator() const { return path / "coordinator.json"; }
  Path lock() const { return path / "coordinator.lock"; }
  Path edit_lock() const { return path / "host_worker.lock"; }
};

// What `coordinator.json` says; only its owner may read it, because it holds the token.
struct CoordinatorFile {
  std::int64_t pid = 0;
  std::string host{};  // the machine's name
  std::string address{};
  std::uint16_t port = 0;
  std::string token{};  // empty once the job is over
  std::string ended{};  // how the job ended; empty: it did not, or nobody could say
  bool over() const { return !ended.empty(); }
};

// nullopt: there is no such file. Throws DataError for one that is damaged.
std::optional<CoordinatorFile> read_coordinator(const JobFolder& folder);
void write_coordinator(const JobFolder& folder, const CoordinatorFile& file);

// Held by one process at a time, and free again when that one ends in whatever way.
class FileLock {
 public:
  // At once, or after waiting for at most `patience`; nullopt: another process has it. Throws Error when the file
  // cannot be made.
  static std::optional<FileLock> take(const Path& path, std::chrono::milliseconds patience = {});

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// For as long as it lives this process coordinates the job. Throws Error naming the one that does so already.
FileLock coordinate(const JobFolder& folder);
// A process that lives holds the lock.
bool is_coordinated(const JobFolder& folder);

}  // namespace dtrain::cli
