// CudaExecutable: what persists between steps, in the device's memory and, as far as it was asked for, on the host.
#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "../../state_row.hpp"
#include "../executable.hpp"

namespace dtrain::backend::cuda {

void CudaExecutable::ensure_optimizer(std::size_t slots) {
  const std::size_t size = slots * state_.parameters.size();
  if (state_.optimizer.empty() && size > 0) {
    state_.optimizer.assign(size, 0.0f);
    optimizer_ = std::make_unique<DeviceMemory>(*device_, size * sizeof(float));
    upload_all(*device_, optimizer_->data(), state_.optimizer);
  }
  DTRAIN_CHECK(state_.optimizer.size() == size, "the optimizer state is another rule's");
}

void CudaExecutable::ensure_average(const nn::Optimizer& rule) {
  if (rule.average == 0 || average_) return;
  state();  // brings it here
  begin_average(rule, state_);
  average_ = uploaded(state_.average);
}

const ModelState& CudaExecutable::state() const {
  if (std::exchange(stale_state_, false)) {
    download_all(*device_, state_.parameters, at<float>(Part::parameters));
    download_all(*device_, state_.statistics, at<float>(Part::statistics));
    if (optimizer_) download_all(*device_, state_.optimizer, optimizer_->data());
    if (average_) download_all(*device_, state_.average, average_->data());
  }
  return state_;
}

// What is on the host may be old, but not its sizes.
std::int64_t CudaExecutable::state_size() const { return row_size(state_); }

std::vector<float> CudaExecutable::state_floats(FloatRange range) const {
  std::vector<float> floats(static_cast<std::size_t>(range.size));
  visit_row(state_, range, [&](const std::vector<float>& buffer, auto first, auto size, auto done) {
    const float* const there = &buffer == &state_.parameters   ? at<float>(Part::parameters)
                               : &buffer == &state_.statistics ? at<float>(Part::statistics)
                               : &buffer == &state_.average    ? reinterpret_cast<float*>(average_->data())
                                                               : reinterpret_cast<float*>(optimizer_->data());
    device_->download(floats.data() + done, there + first, static_cast<std::size_t>(size) * sizeof(float));
  });
  return floats;
}

void CudaExecutable::write_state(ModelState state) {
  DTRAIN_CHECK(static_cast<std::int64_t>(state.parameters.size()) == model_.graph.parameter_count,
               "another graph's parameters");
  DTRAIN_CHECK(static_cast<std::int64_t>(state.statistics.size()) == model_.graph.statistic_count,
               "another graph's statistics");
  DTRAIN_CHECK(state.parameters.empty() || state.optimizer.size() % state.parameters.size() == 0,
               "the optimizer state is not whole slots");
  check_average(state);
  state_ = std::move(state);
  stale_state_ = false;
  stale_weights_ = true;
  upload_all(*device_, at<float>(Part::parameters), state_.parameters);
  upload_all(*device_, at<float>(Part::statistics), state_.statistics);
  optimizer_.reset();
  average_.reset();
  optimizer_ = uploaded(state_.optimizer);
  average_ = uploaded(state_.average);
}

std::unique_ptr<DeviceMemory> CudaExecutable::uploaded(const std::vector<float>& values) {
  if (values.empty()) return nullptr;
  auto memory = std::make_unique<DeviceMemory>(*device_, values.size() * sizeof(float));
  upload_all(*device_, memory->data(), values);
  return memory;
}

void CudaExecutable::exchange_average() {
  if (!average_) return;
  const std::int64_t parameters = contribution_.gradients, statistics = contribution_.statistics;
  auto* const average = reinterpret_cast<float*>(average_->data());
  const char* const name = "exchange of weights and average";
  run_once({{name, Exchange{at<float>(Part::parameters), average, parameters}},
            {name, Exchange{at<float>(Part::statistics), average + parameters, statistics}}});
  stale_weights_ = stale_state_ = true;
}

}  // namespace dtrain::backend::cuda
