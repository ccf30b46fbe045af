#include "wait_for_stop.hpp"

#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

#include "job_client.hpp"
#include "process_facts.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kAfterStopTimeout = 30s;  // for the end of the coordinator itself
constexpr auto kStopLook = 50ms;
constexpr auto kEndOfProcess = 10s;  // that has recorded the end of its job
constexpr auto kBetweenStops = 2s, kPatience = 15s;

// A coordinator that was killed writes nothing any more. One that cannot be reached may be replaced by another.
class Liveness {
 public:
  bool is_gone(const JobFolder& folder, const CoordinatorFile& file) {
    const auto now = std::chrono::steady_clock::now();
    if (is_coordinated(folder)) heard_ = now;
    if (now >= next_try_) {
      if (answers(file)) heard_ = now;
      next_try_ = std::chrono::steady_clock::now() + kBetweenStops;
    }
    return now - heard_ > kPatience;
  }

 private:
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now(), next_try_{};
};

// A coordinator records the end just before its process ends; until then the folder takes no other job.
void wait_until_free(const JobFolder& folder) {
  const auto until = std::chrono::steady_clock::now() + kEndOfProcess;
  while (is_coordinated(folder) && std::chrono::steady_clock::now() < until && stop_signal() == 0) {
    std::this_thread::sleep_for(kStopLook);
  }
}

}  // namespace

void wait_until_over(const JobFolder& folder) {
  const auto begin = std::chrono::steady_clock::now();
  Liveness coordinator;
  for (;;) {
    const CoordinatorFile file = read_coordinator(folder).value_or(CoordinatorFile{});
    if (file.over()) return wait_until_free(folder);
    if (coordinator.is_gone(folder, file)) return;
    if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped waiting; the job is still ending");
    if (std::chrono::steady_clock::now() - begin > file.stop_timeout + kAfterStopTimeout) {
      throw Error(fmt::format("{}: the job has not ended in time", folder.path.string()),
                  "`dtrain stop --now` kills all processes at once");
    }
    std::this_thread::sleep_for(kStopLook);
  }
}

StopOutcome stop_outcome(ExitCode of_job) {
  return of_job == ExitCode::resumable ? StopOutcome::resumable : StopOutcome::unsaved;
}

StopOutcome stop_job_in(const JobFolder& folder, const std::string& why) {
  const auto file = read_coordinator(folder);
  if (!file || file->over()) return StopOutcome::no_job;
  try {
    ask_to_stop(folder, why, false);
  } catch (const Error&) {
    const auto now = read_coordinator(folder);
    if (!now) return StopOutcome::no_job;
    if (now->over()) return stop_outcome(now->exit_code);
    // One of this machine that holds no lock has ended without a record, and nobody took over.
    if (now->host == host_name() && !is_coordinated(folder)) return StopOutcome::no_job;
    throw;
  }
  wait_until_over(folder);
  return stop_outcome(read_coordinator(folder).value_or(CoordinatorFile{}).exit_code);
}

}  // namespace dtrain::job
