#include "checked_toy_training.hpp"

namespace dtrain::world {

using elastic::Left;

Left::How CheckedToyTraining::train(elastic::Membership& membership, const WorkerFacts&) {
  ToyResult result = train_toy(membership, task_, ledger_);
  if (result.ended == ToyResult::Ended::removed) return Left::How::removed;
  if (result.ended == ToyResult::Ended::stopped) return Left::How::stopped;
  const std::lock_guard lock(mutex_);
  finished_.push_back(std::move(result.state));
  return Left::How::done;
}

std::string CheckedToyTraining::verify() const {
  const std::lock_guard lock(mutex_);
  if (finished_.empty()) return "no worker finished";
  const std::vector<float> expected = expected_weights(task_);
  for (const ToyState& state : finished_) {
    if (state.weights != expected) return "other weights than those of an undisturbed run";
    if (std::string wrong = complaint(task_, ledger_, state.history); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace dtrain::world
