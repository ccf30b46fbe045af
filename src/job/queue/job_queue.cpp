#include "job_queue.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

#include "job/spec/process_facts.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr std::int64_t kSecondsOfADay = 86'400;
constexpr const char* kForgetAfter = "forget-after";
constexpr auto kLockPatience = 20s;
constexpr auto kLockPause = 20ms;
constexpr unsigned kOwnersFile = 0600;  // the environment is in it
constexpr const char* kSpec = "spec.json";
constexpr const char* kState = "state.json";
constexpr const char* kCancel = "cancel";
constexpr const char* kClosed = "closed";
constexpr const char* kDownWhenDone = "down-when-done";
constexpr const char* kLastNumber = "last-number";
constexpr const char* kAtOnce = "now";
constexpr const char* kQueuesOfClusters = "dtrain-jobs";
// What begins so is not finished yet, or is not removed yet.
constexpr const char *kNewJob = ".new-", *kNewDown = ".down-", *kGoneJob = ".gone-";
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

std::string folder_name(int number) { return fmt::format("{:04}", number); }

// The names in the folder; none where there is no such folder or this user may not read it. A listing also makes NFS
// forget that a name was not there. Throws Error where the file server does not answer: what is there then looks as if
// it were not.
std::set<std::string> names_in(const Path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.insert(entry->path().filename().string());
  }
  const bool is_none = !error || error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
                       error == std::errc::permission_denied;
  if (!is_none) throw Error(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  return names;
}

// nullopt: it is not the name of a job's folder.
std::optional<int> job_number(const std::string& name) {
  const auto number = parse_integer(name);
  if (!number || *number <= 0 || *number >= 1'000'000'000) return std::nullopt;
  const auto small = static_cast<int>(*number);
  return folder_name(small) == name ? std::optional(small) : std::nullopt;
}

std::vector<int> numbers_in(const Path& folder) {
  std::vector<int> numbers;
  for (const std::string& name : names_in(folder)) {
    if (const auto number = job_number(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

// For the holder of submit.lock: what is there was left by an interruption.
void remove_unfinished(const Path& folder) {
  for (const std::string& name : names_in(folder)) {
    const auto begins_name = [&](const char* beginning) { return name.starts_with(beginning); };
    std::error_code ignored;
    if (std::ranges::any_of(std::array{kNewJob, kNewDown, kGoneJob}, begins_name))
      std::filesystem::remove_all(folder / name, ignored);
  }
}

// The highest one that a job ever had; 0: none had one.
int last_number_in(const Path& folder) {
  const std::vector<int> numbers = numbers_in(folder);
  const int present = numbers.empty() ? 0 : numbers.back();
  if (!is_listed_or_throw(folder / kLastNumber)) return present;
  return std::max(present, static_cast<int>(parse_integer(trim(read_file(folder / kLastNumber))).value_or(0)));
}

// Tells a folder from another one that has taken its name, and changes with the names in it. It may be as old as what
// NFS remembers of the folder, so that thousands of jobs are no thousands of requests; another folder is asked for.
std::string stamp_of(const Path& folder) {
  struct statx status {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_STATX_DONT_SYNC, STATX_INO | STATX_CTIME, &status) != 0) return "";
  return fmt::format("{} {}.{}", status.stx_ino, status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec);
}

}  // namespace

std::string this_boot() {
  return fmt::format("{} {}", host_name(), trim(read_file("/proc/sys/kernel/random/boot_id")));
}

Path queue_of_cluster(const std::string& shared_folder, const std::string& cluster) {
  const Path base = shared_folder.empty() ? Path(environment("HOME").value_or("/")) : Path(shared_folder);
  return base / kQueuesOfClusters / cluster;
}

// Who may write beside it may have clusters in it too, and touches none of another user: as in /tmp.
static void make_folder_of_queues(const Path& folder) {
  make_folder(folder.parent_path());
  const bool is_new = ::mkdir(folder.c_str(), kReadableFolder) == 0;
  const FileDescriptor own(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  struct stat beside {};
  if (!own || ::fstat(own.get(), &facts) != 0 || ::stat(folder.parent_path().c_str(), &beside) != 0) return;
  if (!is_new && (facts.st_uid != ::geteuid() || (facts.st_mode & kOthersWrite) == 0)) return;
  mode_t mode = facts.st_mode | S_ISVTX;
  if (is_new) {
    const bool has_group = facts.st_gid == beside.st_gid || ::fchown(own.get(), -1, beside.st_gid) == 0;
    mode |= beside.st_mode & (has_group ? kOthersWrite : S_IWOTH);
  }
  if ((mode & kOthersWrite) != 0) ::fchmod(own.get(), mode & 07777);
}

void make_queue_folder(const Path& folder) {
  const Path above = folder.parent_path();
  if (above.filename() != kQueuesOfClusters) return make_own_folder(folder, kReadableFolder);
  make_folder_of_queues(above);
  std::error_code unknown;
  if (!std::filesystem::exists(folder, unknown) && ::access(above.c_str(), W_OK) != 0 && errno == EACCES) {
    const std::string owner = owner_of(above);
    throw Error(fmt::format("{}: cannot make a folder there: it belongs to {}", above.string(), owner),
                fmt::format("ask {} for `chmod 1777 {}`, or choose another shared folder", owner, above.string()));
  }
  make_own_folder(folder, kReadableFolder);
}

FileLock JobQueue::lock_submissions() const {
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  for (;;) {
    if (auto lock = FileLock::take_now(folder_ / "submit.lock", "--job-queue")) return std::move(*lock);
    if (std::chrono::steady_clock::now() > end) {
      throw Error(fmt::format("{}: other processes have held submit.lock for {}", folder_.string(),
                              format_duration(kLockPatience)),
                  "try again; a file server frees the lock of a lost machine after a minute or two");
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

int JobQueue::submit(const ManagedSpec& spec, bool down_when_done) {
  make_queue_folder(folder_);
  const FileLock lock = lock_submissions();
  if (is_listed_or_throw(folder_ / kClosed)) {
    throw UsageError(fmt::format("the queue {} takes no jobs: its cluster is going down, as --down-when-done asked for",
                                 folder_.string()),
                     spec.cluster.empty() ? "" : fmt::format("dtrain cluster up {} starts it again", spec.cluster));
  }
  shares_prefix(spec);
  remove_unfinished(folder_);
  const int number = last_number_in(folder_) + 1;
  const Path fresh = folder_ / fmt::format("{}{}", kNewJob, ::getpid());
  const Path down = folder_ / fmt::format("{}{}", kNewDown, ::getpid());
  try {
    make_own_folder(fresh, kReadableFolder);
    write_file_atomic(fresh / kSpec, to_json(spec).dump() + "\n", kOwnersFile);
    if (down_when_done) write_file_atomic(down, fmt::format("{}\n", number));
    write_file_atomic(folder_ / kLastNumber, fmt::format("{}\n", number));
    rename_durably(fresh, folder_ / folder_name(number));
    // Last: a queue without a job that is not over would let the machines end.
    if (down_when_done) rename_durably(down, folder_ / kDownWhenDone);
  } catch (...) {
    std::error_code ignored;
    for (const Path& file : {fresh, down}) std::filesystem::remove_all(file, ignored);
    throw;
  }
  return number;
}

bool JobQueue::shares_prefix(const ManagedSpec& spec) {
  if (spec.prefix.empty()) return false;
  for (const auto& [number, job] : look()) {
    const bool is_open = job.spec && job.foreign.empty() && !job.record.is_over();
    if (!is_open || job.spec->prefix != spec.prefix) continue;
    if (spec.continues) return true;
    throw UsageError(
        fmt::format("--model-prefix {}: job {} of the queue, which is {}, saves its checkpoints there",
                    spec.prefix.string(), number, enum_name(kJobStateNames, job.record.state)),
        "choose another --model-prefix; or add --resume, and this job goes on from what that one has saved");
  }
  return false;
}

// Also what is not to be run may be looked at.
static std::string read_spec(const Path& file, std::string& foreign) try {
  return read_own_file(file);
} catch (const ForeignFile& error) {
  foreign = fmt::format("{}; {}", error.what(), error.hint());
  return read_file(file);
}

QueuedJob JobQueue::read_job(int number) const {
  QueuedJob job{.number = number, .folder = folder_ / folder_name(number)};
  job.stamp = stamp_of(job.folder);
  const std::set<std::string> names = names_in(job.folder);
  try {
    const Path spec = job.folder / kSpec, state = job.folder / kState;
    job.spec = managed_spec_from(read_spec(spec, job.foreign), spec.string());
    if (names.contains(kState)) job.record = job_record_from(read_file(state), state.string());
    job.cancelled = names.contains(kCancel);
    job.cancelled_now = job.cancelled && trim(read_file(job.folder / kCancel)) == kAtOnce;
  } catch (const Error& error) {
    job.spec.reset();
    job.problem = error.what();
  }
  return job;
}

std::map<int, QueuedJob>& JobQueue::look() {
  const std::vector<int> numbers = numbers_in(folder_);
  std::erase_if(jobs_, [&](const auto& one) { return !std::ranges::binary_search(numbers, one.first); });
  for (const int number : numbers) {
    QueuedJob& job = jobs_[number];
    const bool is_known = job.spec && job.record.is_over() && job.stamp == stamp_of(job.folder);
    if (!is_known) job = read_job(number);
  }
  return jobs_;
}

std::vector<QueuedJob> JobQueue::read() {
  std::vector<QueuedJob> jobs;
  for (const auto& [number, job] : look()) jobs.push_back(job);
  return jobs;
}

std::string JobQueue::command(std::string_view words) const {
  return cluster_.empty() ? fmt::format("dtrain {} --job-queue {}", words, net::shell_quoted(folder_.string()))
                          : fmt::format("dtrain {} --cluster {}", words, cluster_);
}

QueuedJob JobQueue::at(int number) {
  const std::vector<int> numbers = numbers_in(folder_);
  if (std::ranges::find(numbers, number) != numbers.end()) return read_job(number);
  throw UsageError(fmt::format("there is no job {} in the queue {}", number, folder_.string()),
                   fmt::format("`{}` shows the jobs", command("jobs list")));
}

void JobQueue::write(const QueuedJob& job, const JobRecord& record) {
  write_file_atomic(job.folder / kState, to_json(record).dump() + "\n", 0644);
}

bool JobQueue::cancel(int number, bool now) {
  const QueuedJob job = at(number);
  if (!job.spec) throw DataError(job.problem, fmt::format("remove {} to forget the job", job.folder.string()));
  if (job.record.is_over()) {
    throw UsageError(fmt::format("job {} is over: {}", number, enum_name(kJobStateNames, job.record.state)),
                     fmt::format("`{}` shows how it ended", command(fmt::format("jobs show {}", number))));
  }
  if (job.cancelled && (job.cancelled_now || !now)) return false;
  write_file_atomic(job.folder / kCancel, now ? kAtOnce : "", 0644);
  return true;
}

void JobQueue::forget(int number) {
  const FileLock lock = lock_submissions();
  remove_unfinished(folder_);
  const QueuedJob job = at(number);
  if (is_held(job.attempt_lock()) || (job.spec && !job.record.is_over())) {
    throw UsageError(fmt::format("job {} is not over: it is {}", number, enum_name(kJobStateNames, job.record.state)),
                     fmt::format("`{}` ends it", command(fmt::format("jobs cancel {}", number))));
  }
  write_file_atomic(folder_ / kLastNumber, fmt::format("{}\n", last_number_in(folder_)));
  // Under a name that is no job's, so that what is left by an interruption is not one.
  const Path aside = folder_ / fmt::format("{}{}", kGoneJob, number);
  std::filesystem::rename(job.folder, aside);
  std::error_code failed;
  std::filesystem::remove_all(aside, failed);
  jobs_.erase(number);
  if (failed) throw Error(fmt::format("{}: {}", aside.string(), failed.message()), "remove the folder by hand");
}

int JobQueue::forget_after() const {
  if (!is_listed(folder_ / kForgetAfter)) return 0;
  return static_cast<int>(
      std::max<std::int64_t>(parse_integer(trim(read_file(folder_ / kForgetAfter))).value_or(0), 0));
}

void JobQueue::set_forget_after(int days) {
  write_file_atomic(folder_ / kForgetAfter, fmt::format("{}\n", days), 0644);
}

std::vector<int> jobs_over_for(const std::vector<QueuedJob>& jobs, int days, std::int64_t now) {
  std::vector<int> numbers;
  for (const QueuedJob& job : jobs) {
    const bool is_old = job.record.is_over() && job.record.ended <= now - days * kSecondsOfADay;
    if (job.spec && is_old) numbers.push_back(job.number);
  }
  return numbers;
}

std::optional<FileLock> JobQueue::take_runner_lock() const {
  make_queue_folder(folder_);
  return FileLock::take_now(folder_ / "runner.lock", "--job-queue");
}

bool JobQueue::close() {
  const FileLock lock = lock_submissions();
  for (const QueuedJob& job : read()) {
    if (job.spec && job.foreign.empty() && !job.record.is_over()) return false;
  }
  write_file_atomic(folder_ / kClosed, this_boot() + "\n");
  return true;
}

bool JobQueue::is_closed_here() const {
  return is_listed_or_throw(folder_ / kClosed) && trim(read_file(folder_ / kClosed)) == this_boot();
}

void JobQueue::open() {
  if (!is_listed_or_throw(folder_ / kClosed)) return;
  const FileLock lock = lock_submissions();
  std::error_code gone;
  std::filesystem::remove(folder_ / kDownWhenDone, gone);
  std::filesystem::remove(folder_ / kClosed, gone);
}

std::optional<OpenJob> open_job_of(const JobFolder& folder) {
  const Path named = is_listed(folder.queued_job()) ? Path(trim(read_file(folder.queued_job()))) : folder.path;
  std::error_code gone;
  const Path place = std::filesystem::canonical(named, gone);
  const auto number = job_number(place.filename().string());
  if (gone || !number || !is_listed(place / kSpec)) return std::nullopt;
  JobQueue queue(place.parent_path());
  const QueuedJob job = queue.at(*number);
  if (!job.spec || job.record.is_over()) return std::nullopt;
  if (!std::filesystem::equivalent(job.job_folder().path, folder.path, gone)) return std::nullopt;
  return OpenJob{std::move(queue), *number};
}

void name_queued_job(const QueuedJob& job) {
  const JobFolder chosen = job.job_folder();
  if (chosen.path == job.folder) return;
  make_folder(chosen.path);
  write_file_atomic(chosen.queued_job(), std::filesystem::absolute(job.folder).string() + "\n");
}

}  // namespace dtrain::job
