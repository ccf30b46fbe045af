// The folder of a queue of jobs. Any machine that sees the folder may submit jobs and read them; one runner acts.
//
//   0007/             a job: its folder, and its job folder unless the user chose another one
//     spec.json       what was submitted; written once. A runner runs only what its own user, or root, has submitted
//     state.json      how far it is; written by the runner alone
//     cancel          the user wants it to end; "now": without a checkpoint
//     output.log      what its attempts wrote
//     attempt.lock    held by the process of the attempt that is under way
//     attempt.pid     which process that is
//   runner.lock       held by the runner
//   submit.lock       held while a job is added, or the queue is closed
//   last-number       the highest number so far
//   forget-after      days after which the runner removes a job that is over
//   down-when-done    the machines are to end after the last job
//   closed            no job is taken any more; names the machine that closes it, and its boot
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide_jobs.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::job {

struct QueuedJob {
  int number = 0;
  Path folder{};
  std::optional<ManagedSpec> spec{};  // nullopt: it cannot be read, because of `problem`
  std::string problem{};
  std::string foreign{};  // why this user must not run it: another one may have written it
  JobRecord record{};
  bool cancelled = false, cancelled_now = false;
  std::string stamp{};  // of the folder, just before it was read

  Path output() const { return folder / "output.log"; }
  Path attempt_lock() const { return folder / "attempt.lock"; }
  JobFolder job_folder() const { return {spec && !spec->job_folder.empty() ? spec->job_folder : folder}; }
};

class JobQueue {
 public:
  // `cluster`: whose queue it is, as commands choose it; empty: they choose it by its folder.
  explicit JobQueue(Path folder, std::string cluster = {}) : folder_(std::move(folder)), cluster_(std::move(cluster)) {}
  const Path& folder() const { return folder_; }
  // "dtrain jobs list --job-queue 'my queue'", or --cluster NAME: the words with this queue, as a shell takes them.
  std::string command(std::string_view words) const;

  // Adds a job and returns its number. Throws UsageError if the queue is closed, and what shares_prefix() throws, and
  // Error if the disk takes no more; nothing of the job stays then, unless only its folder could not be synced. Once it
  // returns, the job survives a loss of power.
  int submit(const ManagedSpec& spec, bool down_when_done);
  // Whether a job that is not over saves its checkpoints under the same prefix. Throws UsageError, which names that
  // job, unless this one is to continue what is there.
  bool shares_prefix(const ManagedSpec& spec);
  // All jobs by number, as they are now; the map stays until the next call. What is over is read once. Throws Error
  // where the folder, or that of a job, does not answer.
  std::map<int, QueuedJob>& look();
  std::vector<QueuedJob> read();  // the same, as a list of copies
  QueuedJob at(int number);       // throws UsageError: there is none
  // Replaces the record on disk. Throws Error.
  static void write(const QueuedJob& job, const JobRecord& record);
  // Returns false if that was asked for before. Throws UsageError if the job is over, DataError if it cannot be read.
  bool cancel(int number, bool now);

  // Removes the job with its folder. Its number is not used again. Throws UsageError if there is no such job, or it is
  // not over.
  void forget(int number);

  // Days after which the runner removes jobs that are over; 0, the default: never.
  int forget_after() const;
  void set_forget_after(int days);

  std::optional<FileLock> take_runner_lock() const;
  bool has_runner() const { return is_held(folder_ / "runner.lock"); }

  bool goes_down() const { return is_listed(folder_ / "down-when-done"); }
  // Closes the queue; false: a job came meanwhile.
  bool close();
  // Whether this machine has closed it, since it was started. Throws Error where the folder cannot be read.
  bool is_closed_here() const;
  // A machine that was started after the queue was closed takes jobs again.
  void open();

 private:
  FileLock lock_submissions() const;
  QueuedJob read_job(int number) const;

  Path folder_;
  std::string cluster_;
  std::map<int, QueuedJob> jobs_{};  // of the last look
};

// The numbers of jobs that ended so many days before `now`, seconds since 1970, or earlier. Pure.
std::vector<int> jobs_over_for(const std::vector<QueuedJob>& jobs, int days, std::int64_t now);

// The job of a queue that has this job folder and is not over: the queue runs it, or starts it again. It is that of the
// folder itself, or of the one that queued_job() names. nullopt: there is none that this user can read.
struct OpenJob {
  JobQueue queue;
  int number = 0;
};
std::optional<OpenJob> open_job_of(const JobFolder& folder);
// Lets open_job_of() find the job where the user chose its job folder. Throws Error.
void name_queued_job(const QueuedJob& job);

// This machine since its start.
std::string this_boot();

// The queue of a cluster, on its head: in the shared folder, so that a new head finds it; else in the home folder.
Path queue_of_cluster(const std::string& shared_folder, const std::string& cluster);
// Makes the folder of a queue, in which its owner alone writes. The folder above those of clusters is open to all users
// who may write beside it. Throws Error.
void make_queue_folder(const Path& folder);

}  // namespace dtrain::job
