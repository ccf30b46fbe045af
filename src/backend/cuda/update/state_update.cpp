#include "state_update.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

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
                         std::optional<nn::OptimizerKind> rule, CopyCalls copies)
    : device_(device), graph_(graph), dtype_(dtype), layout_(graph), places_(places), copies_(std::move(copies)) {
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
  Recording& work = recording(update.rule, given.from_copies);
  device_.upload(places_.step, &step, sizeof step);
  work.run();
}

std::vector<const Recording*> StateUpdate::recordings() const {
  std::vector<const Recording*> all;
  for (const auto& [steps, recording] : recordings_) all.push_back(recording.get());
  if (from_copies_) all.push_back(from_copies_.get());
  return all;
}

Recording& StateUpdate::recording(const nn::Optimizer& rule, bool from_copies) {
  DTRAIN_CHECK(!from_copies || !is_muon(rule), "muon needs all gradients in the sum");
  auto& found = from_copies ? from_copies_ : recordings_[is_muon(rule) ? rule.newton_schulz.steps : 0];
  if (!found) found = device_.record(from_copies ? calls_from_copies() : calls(rule));
  return *found;
}

std::vector<Call> StateUpdate::calls(const nn::Optimizer& rule) {
  std::vector<Call> calls = {parameters_call(kHeld), statistics_call()};
  if (is_muon(rule)) muon().add_calls(places_.parameters, places_.step, rule.newton_schulz.steps, calls);
  calls.push_back(copies_.renew);
  return calls;
}

std::vector<Call> StateUpdate::calls_from_copies() {
  return {copies_.update, parameters_call(kHeld | kCopied), statistics_call()};
}

Call StateUpdate::parameters_call(int passed_over) const {
  return {"update of the parameters", UpdateParameters{places_.step, places_.parameters, places_.flags,
                                                       layout_.gradients, static_cast<std::uint8_t>(passed_over)}};
}

Call StateUpdate::statistics_call() const {
  return {"update of the statistics",
          UpdateStatistics{places_.step, layout_.gradients, places_.statistics, places_.momenta, layout_.statistics}};
}

const Muon& StateUpdate::muon() {
  if (!muon_) muon_ = std::make_unique<Muon>(device_, MuonLayout(graph_, dtype_));
  return *muon_;
}

}  // namespace dtrain::backend::cuda
