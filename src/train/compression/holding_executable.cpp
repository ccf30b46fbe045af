#include "holding_executable.hpp"

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::train {

void HoldingExecutable::hold_back(std::vector<float> gradients) {
  DTRAIN_CHECK(gradients.size() == held_back_.size(), "what is held back are gradients");
  held_back_ = std::move(gradients);
  state_.reset();
}

const backend::ModelState& HoldingExecutable::state() const {
  if (!state_) {
    state_ = inner_.read_state();
    state_->optimizer.insert(state_->optimizer.end(), held_back_.begin(), held_back_.end());
  }
  return *state_;
}

// As one row: that of the inner executable, then what is held back.
std::vector<float> HoldingExecutable::state_floats(FloatRange range) const {
  const std::int64_t inner = inner_.state_size(), end = range.first + range.size;
  std::vector<float> floats;
  if (range.first < inner) floats = inner_.state_floats({range.first, std::min(end, inner) - range.first});
  const std::int64_t first = std::max<std::int64_t>(range.first - inner, 0);
  if (end > inner) floats.insert(floats.end(), held_back_.begin() + first, held_back_.begin() + (end - inner));
  return floats;
}

void HoldingExecutable::write_state(backend::ModelState state) {
  DTRAIN_CHECK(state.optimizer.size() >= held_back_.size(), "the state has no place for what is held back");
  const auto held = state.optimizer.end() - std::ssize(held_back_);
  std::copy(held, state.optimizer.end(), held_back_.begin());
  state.optimizer.erase(held, state.optimizer.end());
  inner_.write_state(std::move(state));
  state_.reset();
}

void HoldingExecutable::apply(const backend::Update& update) {
  inner_.apply(update);
  state_.reset();
}

void HoldingExecutable::exchange_average() {
  inner_.exchange_average();
  state_.reset();
}

std::uint64_t HoldingExecutable::planned_bytes() const {
  return inner_.planned_bytes() + held_back_.size() * sizeof(float);
}

}  // namespace dtrain::train
