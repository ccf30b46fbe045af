#include "resubmit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/json_words.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/launcher/scheduler_job.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "job/spec/host_list.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/job_launcher.hpp"
#include "scheduler_words.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kLook = 50ms;
constexpr auto kBetweenAsks = 1s;
constexpr auto kNewsTime = 10s;
constexpr std::size_t kNameBytes = 8;
constexpr unsigned kOwnerOnly = 0600;

std::string folders() { return environment("PATH").value_or(""); }

// salloc hands its standard error to the command. Its own words come to this process instead, so the command gets the
// user's at descriptor 3.
constexpr const char* kOwnErrors = "if [ -e /proc/self/fd/3 ]; then exec \"$@\" 2>&3 3>&-; fi; exec \"$@\"";

std::vector<std::string> this_command() {
  std::vector<std::string> command = launcher::program_by_path();
  const std::vector<std::string> arguments = own_arguments();
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// A request for any hosts, or for those of -H.
std::vector<std::string> slurm_job(const config::JobOptions& options, bool chose_number) {
  launcher::SchedulerJob job{.program = launcher::find_program("salloc", folders(), kSlurmHint),
                             .count = options.hosts,
                             .queue = options.queue,
                             .command = {"/bin/sh", "-c", kOwnErrors, "sh"}};
  const std::vector<std::string> command = this_command();
  job.command.insert(job.command.end(), command.begin(), command.end());
  if (options.hostfile) {
    require_lasting_host_file(options);
    for (const auto& host : choose_hosts(options, chose_number, false).list.hosts) {
      job.hosts.push_back(host.host);
    }
    job.count = static_cast<int>(job.hosts.size());
  }
  return launcher::salloc_command(job);
}

// Environment and command go through a file: a scheduler shows the data of a job to every user.
Path write_submission(const config::JobOptions& options) {
  const JobFolder folder{options.folder};
  make_folder(folder.path);
  Path file = std::filesystem::absolute(folder.path) /
              fmt::format("submitted_{}.json", to_hex(unpredictable_bytes(kNameBytes)));
  const Json json =
      Json::object({{"command", words_to_json(this_command())},
                    {"environment", words_to_json(submitted_environment(own_environment(), options.environment))},
                    {"folder", words_to_json({std::filesystem::current_path().string()})}});
  write_file_atomic(file, json.dump(), kOwnerOnly);
  return file;
}

std::vector<std::string> grid_job(const config::JobOptions& options, const Path& submission) {
  launcher::SchedulerJob job{.program = launcher::find_program("qrsh", folders(), kGridHint),
                             .count = options.hosts,
                             .queue = options.queue,
                             .parallel_environment = options.sge_pe,
                             .command = launcher::program_by_path()};
  job.command.insert(job.command.end(), {"agent", "--submitted", submission.string()});
  return launcher::qrsh_command(job);
}

void check_grid(const config::JobOptions& options) {
  const std::vector<std::string> known = launcher::parallel_environments(folders());
  const std::string list =
      known.empty() ? "`qconf -spl` lists none" : fmt::format("there are: {}", fmt::join(known, ", "));
  if (options.hostfile) {
    throw UsageError("-H: Grid Engine chooses the hosts of a job", "leave it out, or choose with --queue where to run");
  }
  if (options.sge_pe.empty()) {
    throw UsageError("--launcher sge needs a parallel environment", "add --sge-pe NAME; " + list);
  }
  if (!known.empty() && std::ranges::find(known, options.sge_pe) == known.end()) {
    throw UsageError(fmt::format("--sge-pe {}: Grid Engine has no such parallel environment", options.sge_pe), list);
  }
}

// Slurm's words so far; those of Grid Engine go to the user's standard error directly.
class SchedulerErrors {
 public:
  explicit SchedulerErrors(Reporter& reporter) : reporter_(reporter) {}
  int descriptor() const { return file_.get(); }
  const std::vector<std::string>& errors() const { return errors_; }

  void look() {
    const std::string text = read_file(fmt::format("/proc/self/fd/{}", file_.get()));
    const std::size_t end = text.rfind('\n') + 1;
    if (end <= seen_) return;
    SchedulerWords words = scheduler_words(std::string_view(text).substr(seen_, end - seen_));
    seen_ = end;
    for (const std::string& note : words.notes) reporter_.note(note);
    errors_.insert(errors_.end(), words.errors.begin(), words.errors.end());
  }

 private:
  Reporter& reporter_;
  FileDescriptor file_ = memory_file();
  std::size_t seen_ = 0;
  std::vector<std::string> errors_;
};

pid_t start(const std::vector<std::string>& words, int death_signal, const SchedulerErrors* errors) {
  Spawn child = spawn_of(words);
  child.environment = own_environment();
  child.output = STDOUT_FILENO;
  child.error = errors ? errors->descriptor() : STDERR_FILENO;
  if (errors) child.extra = STDERR_FILENO;
  child.group = Spawn::Group::session;  // Ctrl-C on the terminal reaches this process alone
  child.death_signal = death_signal;
  return spawn(child);
}

// Stops the job's coordinator if it is running, otherwise the scheduler's command.
class Stopper {
 public:
  Stopper(JobFolder folder, pid_t process) : folder_(std::move(folder)), process_(process) {}

  void look() {
    const int heard = stop_signals();
    const auto now = std::chrono::steady_clock::now();
    if (heard == 0 || (heard == asked_ && now < next_)) return;
    next_ = now + kBetweenAsks;
    if (heard == asked_ && accepted_) return;
    asked_ = heard;
    accepted_ = ask(heard > 1);
    if (!accepted_) ::kill(process_, SIGTERM);
  }

 private:
  bool ask(bool at_once) {
    try {
      ask_to_stop(folder_, stop_reason(stop_signal()), at_once);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  const JobFolder folder_;
  const pid_t process_;
  int asked_ = 0;
  bool accepted_ = false;
  std::chrono::steady_clock::time_point next_{};
};

std::uint64_t last_term(const JobFolder& folder) {
  const auto file = read_coordinator(folder);
  return file ? file->term : 0;
}

// salloc and qrsh return 0 for a killed command, so the coordinator's last record decides; nullopt: it left none. It
// may have been written on another machine, where its last term was begun too.
std::optional<ExitCode> recorded_code(const JobFolder& folder, std::uint64_t term_before) {
  const auto until = std::chrono::steady_clock::now() + kNewsTime;
  do {
    const auto file = is_listed(folder.coordinator()) ? read_coordinator(folder) : std::nullopt;
    if (file && file->term > term_before && file->over()) return file->exit_code;
    if (stop_signal() != 0 && (!file || file->term <= term_before)) return std::nullopt;  // it had not begun
    std::this_thread::sleep_for(kLook);
  } while (std::chrono::steady_clock::now() < until);
  return std::nullopt;
}

int wait_for(pid_t process, const JobFolder& folder, SchedulerErrors* errors) {
  Stopper stopper(folder, process);
  while (!has_ended(process)) {
    stopper.look();
    if (errors) errors->look();
    std::this_thread::sleep_for(kLook);
  }
  return wait_for_end(process).shell_code();
}

ExitCode run_job_of(const std::vector<std::string>& words, int death_signal, const config::JobOptions& options,
                    SchedulerErrors* errors) {
  const JobFolder folder{options.folder};
  const std::uint64_t term_before = last_term(folder);
  const auto code = static_cast<ExitCode>(wait_for(start(words, death_signal, errors), folder, errors));
  if (errors) errors->look();
  if (code == ExitCode::resumable) return code;
  if (code == ExitCode::ok || stop_signal() != 0 || last_term(folder) > term_before) {
    if (const auto recorded = recorded_code(folder, term_before)) return *recorded;
  }
  if (stop_signal() != 0) throw Interrupted(stop_signal(), "the scheduler's job was ended");
  if (code != ExitCode::ok && errors && !errors->errors().empty() && last_term(folder) == term_before) {
    throw Error(scheduler_failure(errors->errors()), scheduler_hint(errors->errors()));
  }
  if (code != ExitCode::ok) return code;
  throw Error("the scheduler's job ended before the training did",
              "with --model-prefix, the same command with --resume goes on from the last checkpoint");
}

// The job's own variables stay, except for those that locate programs.
std::vector<std::string> merged(std::vector<std::string> own, const std::vector<std::string>& submitted) {
  constexpr std::array<std::string_view, 2> kFromSubmitter = {"PATH=", "LD_LIBRARY_PATH="};
  for (const std::string& text : submitted) {
    const std::string lead = text.substr(0, text.find('=') + 1);
    const bool has = std::ranges::any_of(own, [&](const std::string& mine) { return mine.starts_with(lead); });
    if (!has || std::ranges::find(kFromSubmitter, lead) != kFromSubmitter.end()) own = with_variables(own, {text});
  }
  return own;
}

// Holds values of --env, so that it goes however the request ends. The job removes it as soon as it begins.
class Submission {
 public:
  explicit Submission(const config::JobOptions& options) : file_(write_submission(options)) {}
  Submission(const Submission&) = delete;
  ~Submission() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  const Path& file() const { return file_; }

 private:
  const Path file_;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

bool needs_scheduler(const config::JobOptions& options) {
  if (options.launcher == config::Launcher::slurm) return !environment("SLURM_JOB_ID");
  if (options.launcher != config::Launcher::sge || environment("PE_HOSTFILE")) return false;
  if (!environment("JOB_ID") || !environment("SGE_ROOT")) return true;
  throw UsageError("--launcher sge: this Grid Engine job has no parallel environment",
                   "submit it with -pe NAME SLOTS, or use --launcher local");
}

ExitCode run_under_scheduler(const config::JobOptions& options, bool chose_number, Reporter& reporter) {
  if (options.detach) {
    throw UsageError("--detach: the job that the scheduler grants ends with the command that asked for it",
                     "leave it out, and submit the command as a batch script (sbatch, qsub) to let it outlive you");
  }
  watch_stop_signals(2);
  if (options.launcher == config::Launcher::slurm) {
    SchedulerErrors errors(reporter);
    return run_job_of(slurm_job(options, chose_number), SIGHUP, options, &errors);
  }
  check_grid(options);
  const Submission submission(options);
  reporter.detail(fmt::format("asks Grid Engine for {} slots of {}", options.hosts, options.sge_pe));
  return run_job_of(grid_job(options, submission.file()), SIGTERM, options, nullptr);
}

void run_submitted(const Path& file) {
  const Json json = Json::parse(read_own_file(file), file.string());
  std::filesystem::remove(file);
  std::vector<std::string> words = words_from_json(json.at("command"));
  std::vector<std::string> environment = merged(own_environment(), words_from_json(json.at("environment")));
  std::filesystem::current_path(words_from_json(json.at("folder")).at(0));
  ::execve(words.at(0).c_str(), pointers_to(words).data(), pointers_to(environment).data());
  throw Error(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
}

}  // namespace dtrain::job
