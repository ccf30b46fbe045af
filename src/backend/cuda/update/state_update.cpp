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

bool StateUpdate::needs_sum(const nn::Optimizer& rule) {
  return is_muon(rule) || nn::is_layer_wise(rule.kind) || rule.clip_norm > 0;
}

void StateUpdate::run(const Given& given, const Update& update, std::uint64_t t) {
  const nn::Optimizer& rule = update.rule;
  const bool two_slots = nn::optimizer_slots(rule.kind) > 1;
  const nn::NadamShares nadam = nn::nadam_shares(rule, t);
  const UpdateStep step{.rule = rule,
                        .learning_rate = update.learning_rate,
                        .count = given.count,
                        .correction1 = one_minus_power(rule.beta1, t),
                        .correction2 = one_minus_power(rule.beta2, t),
                        .of_gradient = static_cast<float>(nadam.of_gradient),
                        .of_mean = static_cast<float>(nadam.of_mean),
                        .sum = given.sum,
                        .slot1 = given.slots,
                        .slot2 = two_slots ? given.slots + layout_.gradients : nullptr,
                        .divisor = given.count,
                        .average = given.average,
                        .average_share = static_cast<float>(1 - nn::average_decay(rule, t)),
                        .shares = rule.layer_decay == 1 ? nullptr : shares(rule.layer_decay)};
  const Kind kind{.iterations = is_muon(rule) ? rule.newton_schulz.steps : 0,
                  .layer_wise = nn::is_layer_wise(rule.kind),
                  .cuts_norm = rule.clip_norm > 0,
                  .averages = rule.average > 0,
                  .from_copies = given.from_copies};
  auto& work = recordings_[kind];
  if (!work) work = device_.record(calls(kind));
  device_.upload(places_.step, &step, sizeof step);
  work->run();
}

double StateUpdate::gradient_length(float* sum, float count) {
  if (!measure_) {
    std::vector<Call> calls;
    lengths().add_squares(places_.parameters, places_.step, calls);
    measure_ = device_.record(std::move(calls));
  }
  UpdateStep step{};
  step.count = count;
  step.sum = sum;
  device_.upload(places_.step, &step, sizeof step);
  measure_->run();
  return lengths().length_of_sum() / count;
}

std::vector<const Recording*> StateUpdate::recordings() const {
  std::vector<const Recording*> all;
  for (const auto& [kind, recording] : recordings_) all.push_back(recording.get());
  return all;
}

std::vector<Call> StateUpdate::calls(const Kind& kind) {
  std::vector<Call> calls;
  const bool by_weight = kind.iterations == 0 && !kind.layer_wise && !kind.cuts_norm;
  if (kind.from_copies && by_weight) {
    calls = {copies_.update, parameters_call(kHeld | kCopied)};
  } else {
    if (kind.from_copies) calls.push_back(copies_.unpack);
    add_moves(kind, calls);
    calls.push_back(copies_.renew);
  }
  calls.push_back(statistics_call());
  if (kind.averages) calls.push_back(average_call());
  return calls;
}

void StateUpdate::add_moves(const Kind& kind, std::vector<Call>& calls) {
  if (kind.cuts_norm) lengths().add_cut(places_.parameters, places_.step, calls);
  calls.push_back(parameters_call(kHeld));
  if (kind.layer_wise) lengths().add_moves(places_.parameters, places_.flags, places_.step, calls);
  if (kind.iterations > 0) muon().add_calls(places_.parameters, places_.step, kind.iterations, calls);
}

Call StateUpdate::parameters_call(int passed_over) const {
  return {"update of the parameters", UpdateParameters{places_.step, places_.parameters, places_.flags,
                                                       layout_.gradients, static_cast<std::uint8_t>(passed_over)}};
}

Call StateUpdate::statistics_call() const {
  return {"update of the statistics",
          UpdateStatistics{places_.step, layout_.gradients, places_.statistics, places_.momenta, layout_.statistics}};
}

Call StateUpdate::average_call() const {
  return {"average of the weights", UpdateAverage{places_.step, places_.parameters, places_.statistics,
                                                  layout_.gradients, layout_.gradients + layout_.statistics}};
}

const float* StateUpdate::shares(float decay) {
  if (!shares_) shares_ = std::make_unique<LayerShares>(device_, graph_);
  return shares_->of(decay);
}

const TensorLengths& StateUpdate::lengths() {
  if (!lengths_) lengths_ = std::make_unique<TensorLengths>(device_, graph_);
  return *lengths_;
}

const Muon& StateUpdate::muon() {
  if (!muon_) muon_ = std::make_unique<Muon>(device_, MuonLayout(graph_, dtype_));
  return *muon_;
}

}  // namespace dtrain::backend::cuda
