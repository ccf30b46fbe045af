#include "job_end.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error_json.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/with_flags.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/launcher/kubernetes.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::job {
namespace {

// The job failed, with the exit code for the kind of failure.
class JobFailed : public Error {
 public:
  JobFailed(ExitCode code, const std::string& what, std::string hint) : Error(what, std::move(hint)), code_(code) {}
  ExitCode exit_code() const override { return code_; }
  std::string_view kind() const override { return "job-failed"; }

 private:
  ExitCode code_;
};

// As `error` says, with another exit code.
class EndedInPod : public Error {
 public:
  explicit EndedInPod(const Error& error)
      : Error(error.what(), error.hint()),
        code_(error.exit_code() == ExitCode::resumable ? launcher::kStoppedInPod : launcher::kStoppedUnsavedInPod),
        kind_(error.kind()) {}
  ExitCode exit_code() const override { return static_cast<ExitCode>(code_); }
  std::string_view kind() const override { return kind_; }

 private:
  int code_;
  std::string kind_;
};

JobWork::FailureCode failure_code_of(const JobEnd& end, const JobWork& work) {
  const ExitCode code = end.finish.exit_code == ExitCode::resumable ? ExitCode::failed : end.finish.exit_code;
  return end.first_failure ? work.exit_code_of(*end.first_failure, code) : JobWork::FailureCode{code};
}

std::string what_next(const JobEnd& end, JobWork& work) {
  if (end.first_failure && !end.first_failure->hint.empty()) return end.first_failure->hint;
  const ExitCode code = end.finish.exit_code;
  if (code == ExitCode::refused && work.job().is_over_ssh()) {
    return fmt::format("`dtrain run -H {} -- true` tries the hosts alone",
                       net::shell_quoted(work.job().hostfile->string()));
  }
  return work.what_next();
}

void report(const elastic::Failure& failure, const JobFolder& folder, Reporter& reporter) {
  reporter.warn(fmt::format("the first failure was {}{}: {}", failure.host,
                            failure.rank >= 0 ? fmt::format(" (rank {})", failure.rank) : "", failure.reason));
  const bool shown = failure.lines_shown && !reporter.options().quiet;  // a quiet reporter shows no note
  if (!shown) {
    for (const std::string& line : failure.last_lines) reporter.warn("  " + line);
  }
  reporter.note(fmt::format("Its output is in {}", folder.logs().string()));
}

}  // namespace

ExitCode conclude(const JobEnd& end, JobWork& work, const JobFolder& folder, Reporter& reporter) {
  const elastic::Finish& finish = end.finish;
  if (finish.exit_code == ExitCode::ok) {
    work.end();
    return ExitCode::ok;
  }
  if (end.signals > 1) {
    throw Interrupted(end.signal, "all processes of the job were ended at once", work.keeps() ? work.what_next() : "");
  }
  const bool resumable = finish.exit_code == ExitCode::resumable;
  const std::string lost = resumable ? work.lost() : std::string();
  const std::string how = lost.empty() ? finish.reason : fmt::format("{}: {}", finish.reason, lost);
  if (!lost.empty() && (end.asked || work.failed_to_save())) throw JobFailed(ExitCode::failed, how, work.what_next());
  if (resumable && work.keeps()) throw Stopped(how, work.what_next());
  if (resumable && end.signal != 0) {
    const char* unsaved = work.may_go_on() ? "" : ", nothing saved";  // work that may go on may have saved by itself
    throw Interrupted(end.signal, finish.reason + unsaved, work.what_next());
  }
  if (resumable && work.may_go_on()) throw Stopped(finish.reason, work.what_next());
  if (end.first_failure) report(*end.first_failure, folder, reporter);
  const ExitCode code = failure_code_of(end, work).code;
  work.fail(end.first_failure ? &*end.first_failure : nullptr, finish.reason, code);
  throw JobFailed(code, finish.reason, what_next(end, work));
}

bool is_failure_of_program(const JobEnd& end, const JobWork& work) {
  const ExitCode code = end.finish.exit_code;
  return code != ExitCode::ok && code != ExitCode::resumable && failure_code_of(end, work).is_of_program;
}

void write_end(const Error& error, Reporter& reporter) {
  if (reporter.json()) return reporter.pass_on(with_flags(Json::object({{"error", error_to_json(error)}}).dump()));
  const std::string line = "The job ended: " + with_flags(with_hint(error));
  if (reporter.options().quiet) return reporter.pass_on(line);
  reporter.note(line);
}

void refuse_next_pod(const Error& error, const JobEnd& end) {
  const bool of_stop = error.exit_code() == ExitCode::resumable || error.exit_code() == ExitCode::failed;
  if (of_stop && end.asked && end.signals == 0 && environment(launcher::kPodVariable)) throw EndedInPod(error);
}

Replaced::Replaced(const std::string& what, const JobFolder& folder) : Error(what, folder.command("hosts list")) {}

void refuse_if_replaced(const JobFolder& folder, std::uint64_t term) {
  std::optional<CoordinatorFile> file;
  try {
    file = read_coordinator(folder);
  } catch (const Error&) {  // damaged: the coordinator that leads writes it again
  }
  if (file && file->term > term)
    throw Replaced(fmt::format("coordinator {} was elected meanwhile and leads the job", file->term), folder);
}

}  // namespace dtrain::job
