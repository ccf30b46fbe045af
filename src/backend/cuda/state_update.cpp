#include "state_update.hpp"

#include <utility>

namespace dtrain::backend::cuda {
namespace {

float one_minus_power(float base, std::uint64_t exponent) {
  double result = 1, factor = base;
  for (; exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return static_cast<float>(1 - result);
}

bool is_muon(const nn::Optimizer& rule) { return rule.kind == nn::OptimizerKind::muon; }

}  // namespace

StateUpdate::StateUpdate(Device& device, const nn::Graph& graph, DType dtype, const Places& places,
                         std::optional<nn::OptimizerKind> rule, Call last)
    : device_(device), graph_(graph), dtype_(dtype), layout_(graph), places_(places), last_(std::move(last)) {
  if (rule == nn::OptimizerKind::muon) muon();
}

void StateUpdate::run(const Given& given, const Update& update, std::uint64_t t) {
  const bool two_slots = nn::optimizer_slots(update.rule.kind) > 1;
  const UpdateStep step{.rule = update.rule,
                        .learning_rate = update.learning_rate,
                        .count = given.count,
                        .correction1 = one_minus_power(update.rule.beta1, t),
                        .correction2 = one_minus_power(update.rule.beta2, t),
                        .sum = given.sum,
                        .slot1 = given.slots,
                        .slot2 = two_slots ? given.slots + layout_.gradients : nullptr};
  Recording& work = recording(update.rule);
  device_.upload(places_.step, &step, sizeof step);
  work.run();
}

std::vector<const Recording*> StateUpdate::recordings() const {
  std::vector<const Recording*> all;
  for (const auto& [steps, recording] : recordings_) all.push_back(recording.get());
  return all;
}

Recording& StateUpdate::recording(const nn::Optimizer& rule) {
  auto& found = recordings_[is_muon(rule) ? rule.newton_schulz.steps : 0];
  if (!found) found = device_.record(calls(rule));
  return *found;
}

std::vector<Call> StateUpdate::calls(const nn::Optimizer& rule) {
  std::vector<Call> calls = {
      {"update of the parameters",
       UpdateParameters{places_.step, places_.parameters, places_.flags, layout_.gradients}},
      {"update of the statistics",
       UpdateStatistics{places_.step, layout_.gradients, places_.statistics, places_.momenta, layout_.statistics}}};
  if (is_muon(rule)) muon().add_calls(places_.parameters, places_.step, rule.newton_schulz.steps, calls);
  calls.push_back(last_);
  return calls;
}

const Muon& StateUpdate::muon() {
  if (!muon_) muon_ = std::make_unique<Muon>(device_, MuonLayout(graph_, dtype_));
  return *muon_;
}

}  // namespace dtrain::backend::cuda
