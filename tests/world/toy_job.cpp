#include "toy_job.hpp"

#include <fmt/format.h>

namespace dtrain::world {

using elastic::Left;

ToyJob::ToyJob(std::vector<std::string> hosts, const ToyTask& task, const elastic::Policy& policy, SimOptions options)
    : task_(task),
      job_(
          std::move(hosts), policy,
          [this](elastic::Membership& membership, const WorkerFacts&) {
            ToyResult result = train_toy(membership, task_, ledger_);
            if (result.ended == ToyResult::Ended::removed) return Left::How::removed;
            if (result.ended == ToyResult::Ended::stopped) return Left::How::stopped;
            const std::lock_guard lock(mutex_);
            finished_.push_back(std::move(result.state));
            return Left::How::done;
          },
          std::move(options)) {}

std::string ToyJob::run_and_judge(const std::function<void(SimJob&)>& act) {
  const elastic::Finish finish = job_.run(act);
  std::string text;
  if (finish.exit_code != ExitCode::ok) text = "the job ended otherwise: " + finish.reason;
  if (text.empty()) text = judge();
  return text.empty() ? text : text + "\n" + job_.last_events();
}

std::string ToyJob::judge() const {
  const std::lock_guard lock(mutex_);
  if (finished_.empty()) return "no worker finished";
  const std::vector<float> expected = expected_weights(task_);
  for (const ToyState& state : finished_) {
    if (state.weights != expected) return "other weights than those of an undisturbed run";
    if (std::string text = complaint(task_, ledger_, state.history); !text.empty()) return text;
  }
  return {};
}

}  // namespace dtrain::world
