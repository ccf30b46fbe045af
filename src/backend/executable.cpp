// What all executables do alike, and those that compute on the host.
#include <algorithm>

#include <dtrain/base/error.hpp>

#include "state_row.hpp"

namespace dtrain::backend {

ContributionSink* StepSink::host() const {
  const auto* const sink = std::get_if<ContributionSink*>(&to_);
  return sink ? *sink : deferring();
}

DeferringSink* StepSink::deferring() const {
  const auto* const sink = std::get_if<DeferringSink*>(&to_);
  return sink ? *sink : nullptr;
}

MeetingSink* StepSink::meeting() const {
  const auto* const sink = std::get_if<MeetingSink*>(&to_);
  return sink ? *sink : nullptr;
}

DeviceSink* StepSink::device() const {
  const auto* const sink = std::get_if<DeviceSink*>(&to_);
  return sink ? *sink : nullptr;
}

ContributionSink& StepSink::require_host() const {
  DTRAIN_CHECK(host(), "this executable leaves contributions on the host");
  return *host();
}

void Executable::apply(std::span<const float> sum, const Update& update) {
  set_sum(sum);
  apply(update);
}

StepMetrics Executable::evaluate(const HostBatch& batch, std::span<float> logits) {
  return evaluate(batch, nn::image_views(1), logits);
}

std::uint64_t HostExecutable::stage(const HostBatch&) { return 0; }
std::vector<FloatRange> HostExecutable::device_parts() const { return {}; }
std::optional<double> HostExecutable::gradient_norm() { return std::nullopt; }
std::int64_t HostExecutable::state_size() const { return row_size(state()); }
StateNumbers HostExecutable::state_numbers() const { return {state().updates, state().loss_scale}; }

Json HostExecutable::execution() const { return {}; }
std::vector<std::string> HostExecutable::take_warnings() { return {}; }

std::vector<float> HostExecutable::state_floats(FloatRange range) const {
  std::vector<float> floats(static_cast<std::size_t>(range.size));
  visit_row(state(), range, [&](const std::vector<float>& buffer, auto first, auto size, auto done) {
    std::copy_n(buffer.begin() + first, size, floats.begin() + done);
  });
  return floats;
}

}  // namespace dtrain::backend
