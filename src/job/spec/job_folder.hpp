// The files of a job folder that commands use: its coordinator and its hosts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/job_files.hpp>
#include <dtrain/elastic/policy.hpp>

#include "config/job_options.hpp"

namespace dtrain::job {

struct JobFolder {
  Path path;
  Path hosts() const { return path / elastic::job_file::kHosts; }
  Path log() const { return path / elastic::job_file::kMemberLog; }
  Path events() const { return path / elastic::job_file::kEvents; }
  Path journal() const { return path / elastic::job_file::kJournal; }
  Path tiebreakers() const { return path / elastic::job_file::kTiebreakers; }
  Path steps() const { return path / "steps.jsonl"; }
  Path configuration() const { return path / "train.toml"; }
  Path first_configuration() const { return path / "train.first.toml"; }  // once a resume has had other options
  Path logs() const { return path / elastic::job_file::kLogs; }
  // The log of a coordinator without a terminal: of a detached job, or one that took over.
  Path coordinator_log() const { return logs() / elastic::job_file::kCoordinatorLog; }
  Path ledger() const { return path / "ledger"; }
  Path latest() const { return path / "latest_checkpoint"; }  // path of the manifest of this run's newest checkpoint
  Path known_hosts() const { return path / "known_hosts"; }
  Path queued_job() const { return path / "queued-job"; }  // the folder of the queue's job that runs here, elsewhere
  Path coordinator() const { return path / "coordinator.json"; }
  Path lock() const { return path / "coordinator.lock"; }
  Path agents_lock() const { return path / "agents.lock"; }  // held by each agent on the coordinator's machine
  // "dtrain stop --job-dir 'my job'": the words with this folder, as a shell takes them.
  std::string command(std::string_view words) const;
};

// The folder with the records of a training in one process that saves checkpoints of this prefix.
inline JobFolder folder_of_prefix(const Path& prefix) { return {prefix.string() + "-run"}; }

// The folder that every host gets before its agent starts (--sync-dst-dir).
struct SyncedFolder {
  std::string to{};     // empty: nothing
  Path from{};          // on the coordinator's machine
  bool shared = false;  // true: on the file system of the job folder, which other machines may see as well
};

// The content of `coordinator.json`. Only its owner may read it, because it holds the token.
struct CoordinatorFile {
  std::int64_t pid = 0;
  std::string host{};                    // name of the machine
  std::vector<std::string> addresses{};  // numeric, the likeliest first: which of them works depends on the client
  std::uint16_t port = 0;
  config::Launcher launcher = config::Launcher::automatic;  // how agents are started; automatic: unknown
  SyncedFolder sync{};
  // The folder in which the user began the job, to which its paths are relative; empty: unknown.
  Path started_in{};
  std::string token{};        // empty when the job is over
  std::uint64_t term = 0;     // term of this coordinator, counted over all coordinators of the job
  bool survives = false;      // true: another coordinator takes over when this one is lost
  std::string data{};         // how gradients travel between machines: tls, plain, gloo or nccl; empty: not recorded
  bool runs_program = false;  // the work is a program of another framework
  bool has_log = false;       // this coordinator has no terminal: what it says is in coordinator_log()
  std::chrono::milliseconds stop_timeout = elastic::Policy{}.stop_timeout;  // its processes end within it after a stop
  std::string ended{};          // how the job ended; empty: it runs, or the coordinator was killed
  ExitCode exit_code{};         // of a job that is over
  bool program_failed = false;  // exit_code is that of its program, which failed, and says nothing of dtrain
  bool over() const { return !ended.empty(); }
};

// Reads coordinator.json. nullopt: there is none. Throws DataError if it is damaged.
std::optional<CoordinatorFile> read_coordinator(const JobFolder& folder);
// The same, for what its coordinator wants done here. Throws ForeignFile if another user may have written it.
std::optional<CoordinatorFile> read_own_coordinator(const JobFolder& folder);
// The content of that file, wherever it is. `source` names it in errors.
CoordinatorFile coordinator_in(const std::string& text, const std::string& source);
void write_coordinator(const JobFolder& folder, const CoordinatorFile& file);

// A lock that one process holds at a time; released when the process ends, in whatever way.
class FileLock {
 public:
  // nullopt: another process holds it, for longer than commands that look at it do: about a second. Throws Error if the
  // file cannot be created, or its file system has no locks; it refers to the option that chose the folder. A new file
  // gets these permissions, less the umask.
  static std::optional<FileLock> take(const Path& path, std::string_view option = "--job-dir",
                                      unsigned permissions = 0666);
  // The same without waiting, for callers that try again or go on without the lock.
  static std::optional<FileLock> take_now(const Path& path, std::string_view option = "--job-dir",
                                          unsigned permissions = 0666);
  // Held together with others that share it. Throws Error if the file cannot be created or locked, or another process
  // holds the lock alone for so long.
  static FileLock share(const Path& path, std::chrono::milliseconds patience = std::chrono::seconds(10));
  // For a child that is to hold the lock as well: it is free once all of them have ended.
  const FileDescriptor& descriptor() const { return fd_; }

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// Whether a live process holds the lock. False where there is no such file.
bool is_held(const Path& lock);
// Makes this process the coordinator of the job while the lock lives. Throws job_runs_there().
FileLock coordinate(const JobFolder& folder);
// The error for a folder whose job runs. `coordinator`: the record of it; nullopt: unknown.
Error job_runs_there(const JobFolder& folder, const std::optional<CoordinatorFile>& coordinator);
// Whether a live process holds the lock.
bool is_coordinated(const JobFolder& folder);
// The agents that hold agents.lock, as the kernel lists them; empty: none, or they are not visible here.
std::vector<std::int64_t> agents_of(const JobFolder& folder);
// Process ids of those who hold a lock on the file with this inode, by the content of /proc/locks. Pure.
std::vector<std::int64_t> holders_in(const std::string& locks, std::uint64_t inode);
// Whether an agent on this machine still runs.
bool has_agents(const JobFolder& folder);
// Whether agents of this machine's launcher live, though the job has not ended: they are to choose a coordinator.
bool has_agents_of_unfinished_job(const JobFolder& folder);
// Whether another coordinator may take over from this one: for a job on this machine, whether any agent lives.
bool may_have_successor(const JobFolder& folder, const CoordinatorFile& file);

}  // namespace dtrain::job
