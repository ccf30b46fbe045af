#include "attempt.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/external/program.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "job/spec/job_client.hpp"
#include "job/spec/prefix_owner.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kAskAgain = 30s;
constexpr std::size_t kMostOfLog = 64 << 10;
constexpr std::string_view kErrorWord = "dtrain: ";

// A head's variables change when machines come and go, so they are read when the attempt begins.
constexpr const char* kWithProfile =
    "if [ -r /etc/profile.d/deeplearning.sh ]; then . /etc/profile.d/deeplearning.sh; fi; exec \"$@\"";

std::vector<std::string> command_of(const ManagedSpec& spec) {
  std::vector<std::string> command;
  if (!spec.cluster.empty()) command = {"/bin/sh", "-c", kWithProfile, "sh"};
  for (const std::vector<std::string>& words : {launcher::program_by_path(), spec.words}) {
    command.insert(command.end(), words.begin(), words.end());
  }
  return command;
}

bool is_last_owner(const QueuedJob& job) {
  const Path& prefix = job.spec->prefix;
  if (prefix.empty() || data::is_remote(prefix)) return true;  // of an earlier version, or there is no such file
  std::error_code gone;
  return std::filesystem::equivalent(read_owner(prefix).job_folder, job.job_folder().path, gone);
}

// The first attempt continues what the user let it; each later one continues the job's own checkpoints, on the machines
// that are ready then.
std::vector<std::string> environment_of(const QueuedJob& job) {
  std::vector<std::string> environment = with_variables(own_environment(), job.spec->environment);
  environment = with_variables(environment, {fmt::format("{}={}", kManagedVariable, job.folder.string())});
  if (job.spec->job_folder.empty()) {
    environment = with_variables(environment, {fmt::format("{}={}", kAttemptJobDir, job.folder.string())});
  }
  if (resumes_own(job)) {
    environment = with_variables(environment, {fmt::format("{}=true", kAttemptResume)});
    if (!job.spec->cluster.empty())
      environment = with_variables(environment, {fmt::format("{}=true", kAttemptResetHosts)});
  }
  return environment;
}

std::optional<CoordinatorFile> coordinator_of(const JobFolder& folder) try {
  return is_listed(folder.coordinator()) ? read_coordinator(folder) : std::nullopt;
} catch (const Error&) {  // damaged, or the folder is away
  return std::nullopt;
}

constexpr const char* kProcess = "attempt.pid";  // "PID IDENTITY", by process_identity(); of earlier versions others

std::string text_in(const Path& file) try {
  return is_listed(file) ? std::string(trim(read_file(file))) : "";
} catch (const Error&) {
  return "";
}

// The process that the record names, if it still is that one and on this machine.
std::optional<pid_t> recorded_process(const QueuedJob& job) {
  const std::string text = text_in(job.folder / kProcess);
  const auto blank = text.find(' ');
  const auto process = parse_integer(text.substr(0, blank));
  if (!process || *process <= 1 || blank == text.npos) return std::nullopt;
  return text.substr(blank + 1) == process_identity(*process) ? std::optional(static_cast<pid_t>(*process))
                                                              : std::nullopt;
}

// Finds what no record names, because its runner was lost before it wrote one. Commands that only ask whether the lock
// is held have it open too, but not the mark.
std::vector<pid_t> holders_here(const QueuedJob& job) {
  std::vector<pid_t> holders = processes_marked(fmt::format("{}=", kManagedVariable));
  std::erase_if(holders, [&](pid_t process) {
    std::error_code gone;
    return !std::filesystem::equivalent(fmt::format("/proc/{}/fd/3", process), job.attempt_lock(), gone);
  });
  return holders;
}

}  // namespace

// The first coordinator of the job is recorded before anything is saved, and after the prefix was found to hold nothing
// that the job was not to continue. A loss of power may take the record of the first checkpoint: then no other run must
// have saved under the prefix meanwhile.
bool resumes_own(const QueuedJob& job) {
  if (!job.spec->resumes || job.record.attempts <= 1) return false;
  if (!job.record.progress.empty()) return true;
  return job.record.term > job.record.first_term && is_last_owner(job);
}

std::uint64_t last_term_in(const JobFolder& folder) {
  const auto file = coordinator_of(folder);
  return file ? file->term : 0;
}

void Attempt::start() try {
  const FileLock lock = [&] {
    if (auto taken = FileLock::take(job_.attempt_lock(), "--job-queue")) return std::move(*taken);
    throw Error(fmt::format("{}: an earlier attempt still runs", job_.attempt_lock().string()));
  }();
  std::error_code stays;  // recorded_process() knows that it is an old one
  std::filesystem::remove(job_.folder / kProcess, stays);
  name_queued_job(job_);
  const FileDescriptor log = open_log(job_.output());
  Spawn child = spawn_of(command_of(*job_.spec));
  child.environment = environment_of(job_);
  child.folder = job_.spec->folder;
  child.output = child.error = log.get();
  child.extra = lock.descriptor().get();  // holders_here() looks for it there
  child.group = Spawn::Group::session;
  child_ = spawn(child);
  write_file_atomic(job_.folder / kProcess, fmt::format("{} {}\n", child_, process_identity(child_)));
} catch (const std::exception& error) {  // without a record, holders_here() finds the process
  if (child_ == 0) not_started_ = error.what();
}

AttemptSeen Attempt::look() {
  if (!not_started_.empty()) return ended(static_cast<int>(ExitCode::failed), not_started_);
  if (child_ != 0) {
    if (!has_ended(child_)) return {.kind = AttemptSeen::Kind::alive};
    end_ = wait_for_end(std::exchange(child_, 0));
  }
  if (!end_ && is_held(job_.attempt_lock())) return {.kind = AttemptSeen::Kind::alive};
  AttemptSeen seen = after_process();
  seen.began = last_term_in(job_.job_folder()) > job_.record.term;
  return seen;
}

// The coordinator's record decides, if it is of this attempt: the process may have been killed after it, or before the
// job was over.
AttemptSeen Attempt::after_process() {
  auto file = coordinator_of(job_.job_folder());
  if (file && file->term <= job_.record.term) file.reset();
  const bool has_code = end_ && end_->signal == 0;
  if (file && !file->over() && !(end_ && end_->ok())) {
    if (has_successor(*file)) return {.kind = AttemptSeen::Kind::alive};
    file = coordinator_of(job_.job_folder());
  }
  if (file && file->over()) {
    const std::string error = file->exit_code == ExitCode::ok ? "" : last_error();
    AttemptSeen seen = ended(static_cast<int>(file->exit_code), error.empty() ? file->ended : error);
    seen.by_program = file->program_failed;
    seen.by_user = file->ended.find(kStoppedByCommand) != file->ended.npos;
    return seen;
  }
  if (has_code) return ended(end_->code, last_error());
  AttemptSeen seen{.kind = AttemptSeen::Kind::lost, .progress = progress()};
  seen.cause = end_ ? "its process " + describe_end(*end_) : "its process was lost together with the runner";
  return seen;
}

bool Attempt::has_successor(const CoordinatorFile& file) {
  try {
    if (!successor_ && !may_have_successor(job_.job_folder(), file)) return false;
    if (!successor_) successor_.emplace(job_.job_folder());
    return successor_->goes_on();
  } catch (const Error&) {  // there was one, or could have been one, and it is gone
    return false;
  }
}

AttemptSeen Attempt::ended(int code, std::string cause) const {
  return {.kind = AttemptSeen::Kind::ended, .exit_code = code, .cause = std::move(cause), .progress = progress()};
}

std::string Attempt::progress() const {
  const JobFolder folder = job_.job_folder();
  if (last_term_in(folder) <= job_.record.first_term) return "";  // a job before this one chose the same folder
  std::string checkpoint = text_in(folder.latest());
  if (!checkpoint.empty()) return checkpoint;
  const std::int64_t number = external::read_progress(folder.path);
  return number == 0 ? "" : std::to_string(number);
}

// The last error that this attempt wrote, without the program's name.
std::string Attempt::last_error() const {
  std::ifstream stream(job_.output(), std::ios::binary | std::ios::ate);
  if (!stream) return "";
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(stream.tellg(), 0));
  const std::uint64_t begin = std::max(job_.record.log_begin, size > kMostOfLog ? size - kMostOfLog : 0);
  if (begin >= size) return "";
  std::string text(size - begin, '\0');
  stream.seekg(static_cast<std::streamoff>(begin));
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  std::string found;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(kErrorWord)) found = line.substr(kErrorWord.size());
  }
  return found;
}

void Attempt::stop(const std::string& reason, bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (time < next_ask_ && (asked_now_ || !now)) return;
  next_ask_ = time + kAskAgain;
  asked_now_ = now;
  try {
    if (last_term_in(job_.job_folder()) > job_.record.term) {
      return ask_to_stop(job_.job_folder(), reason, now);
    }
  } catch (const Error&) {  // it is over by now, or its coordinator does not answer
  }
  if (!is_held(job_.attempt_lock())) return;
  for (const pid_t process : processes_here()) ::kill(process, now ? SIGKILL : SIGTERM);
}

std::vector<pid_t> Attempt::processes_here() const {
  if (child_ != 0) return {child_};
  if (const auto recorded = recorded_process(job_)) return {*recorded};
  return holders_here(job_);
}

}  // namespace dtrain::job
