#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kLongest = 330s;
constexpr auto kLook = 50ms;
constexpr auto kBetweenTries = 2s, kPatience = 15s;

struct StopCommand {
  job::JobFolder job{"."};
  bool now = false;
};

void bind(config::OptionSet& set, StopCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
  set.add("--now", options.now, "kill all processes at once, without a checkpoint");
}

// A coordinator that was killed writes nothing any more. One that cannot be reached may be replaced by another.
class Liveness {
 public:
  bool is_gone(const job::JobFolder& folder, const job::CoordinatorFile& file) {
    const auto now = std::chrono::steady_clock::now();
    if (job::is_coordinated(folder)) heard_ = now;
    if (now >= next_try_) {
      if (job::answers(file)) heard_ = now;
      next_try_ = std::chrono::steady_clock::now() + kBetweenTries;
    }
    return now - heard_ > kPatience;
  }

 private:
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now(), next_try_{};
};

void wait_until_over(const job::JobFolder& folder) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  Liveness coordinator;
  for (;;) {
    const job::CoordinatorFile file = job::read_coordinator(folder).value_or(job::CoordinatorFile{});
    if (file.over() || coordinator.is_gone(folder, file)) return;
    if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped waiting; the job is still ending");
    if (std::chrono::steady_clock::now() > end) {
      throw Error(fmt::format("{}: the job has not ended in time", folder.path.string()),
                  "`dtrain stop --now` kills all processes at once");
    }
    std::this_thread::sleep_for(kLook);
  }
}

ExitCode act(const StopCommand& options, const config::OptionSet&, Reporter& reporter) {
  watch_stop_signals();
  job::ask_to_stop(options.job, "requested by `dtrain stop`", options.now);
  wait_until_over(options.job);
  const std::string ended = job::read_coordinator(options.job).value_or(job::CoordinatorFile{}).ended;
  if (reporter.json()) {
    reporter.answer_json(
        Json::object({{"schema", "dtrain.stop/1"}, {"job_dir", options.job.path.string()}, {"ended", ended}}));
  } else {
    reporter.answer(ended.empty() ? "the job has already ended" : ended);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_stop() {
  auto command =
      make_command<StopCommand>("stop", "stop a job on all hosts; it saves a checkpoint and exits with code 75", act);
  command->examples = {"dtrain stop --job-dir job", "dtrain stop --job-dir job --now"};
  command->see_also = {"hosts list", "events", "train"};
  return command;
}

}  // namespace dtrain::cli
