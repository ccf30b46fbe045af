#include "job_watch.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

#include "job/spec/job_client.hpp"

namespace dtrain::job {
namespace {

constexpr std::chrono::milliseconds kPause{100};

}  // namespace

JobWatch::JobWatch(const JobFolder& folder, Reporter& reporter)
    : folder_(folder), reporter_(reporter), log_(folder.coordinator_log()) {
  while (log_.next()) {
  }
}

ExitCode JobWatch::until_over() {
  JobLife life(folder_);
  while (life.goes_on()) {
    pass_signals_on();
    if (show_new_lines()) life.heard();
    std::this_thread::sleep_for(kPause);
  }
  log_.end();
  show_new_lines();
  const auto file = life.record();
  if (!file) throw Error(fmt::format("{}: the record of the job is gone", folder_.path.string()));
  return file->exit_code;
}

bool JobWatch::show_new_lines() {
  bool any = false;
  for (; log_.next(); any = true) reporter_.pass_on(log_.line());
  return any;
}

void JobWatch::pass_signals_on() {
  const int heard = stop_signals();
  if (heard == std::exchange(signals_passed_on_, heard)) return;
  try {
    ask_to_stop(folder_, stop_reason(stop_signal()), heard > 1);
  } catch (const RemoteError& error) {
    throw Interrupted(stop_signal(), error.what(),
                      fmt::format("the job may go on; `{}` ends it", folder_.command("stop")));
  } catch (const Error&) {  // it ended meanwhile
  }
}

}  // namespace dtrain::job
