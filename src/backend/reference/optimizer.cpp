#include "optimizer.hpp"

#include <cmath>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "muon.hpp"

namespace dtrain::backend::reference {
namespace {

// One weight's place in the flat buffers; slot2 is read by adam and adamw only.
struct Weight {
  float& value;
  float& slot1;
  float& slot2;
  double gradient;  // mean over the samples, without decay
  double decay;     // 0 where the tensor does not decay
  double factor;    // of the tensor's group
};

// What adam's rules share: the learning rate and the corrections of step t.
struct Rates {
  const nn::Optimizer& rule;
  double rate;
  double correction1, correction2;  // 1 - beta^t
};

double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

float narrow(double value) { return static_cast<float>(value); }

void sgd(const Rates& r, Weight w) {
  const double gradient = w.factor * w.gradient + w.decay * w.value;
  w.slot1 = narrow(r.rule.momentum * static_cast<double>(w.slot1) - r.rate * gradient);
  w.value += w.slot1;
}

void nag(const Rates& r, double momentum, Weight w) {
  const double gradient = w.factor * w.gradient + w.decay * w.value;
  w.slot1 = narrow(momentum * static_cast<double>(w.slot1) + gradient);
  w.value = narrow(w.value - r.rate * (gradient + momentum * static_cast<double>(w.slot1)));
}

void update_moments(const nn::Optimizer& rule, double gradient, Weight w) {
  w.slot1 = narrow(static_cast<double>(rule.beta1) * w.slot1 + (1.0 - rule.beta1) * gradient);
  w.slot2 = narrow(static_cast<double>(rule.beta2) * w.slot2 + (1.0 - rule.beta2) * gradient * gradient);
}

void adam(const Rates& r, Weight w) {
  update_moments(r.rule, w.gradient + w.decay * w.value, w);
  const double rate = w.factor * r.rate * std::sqrt(r.correction2) / r.correction1;
  w.value = narrow(w.value - rate * w.slot1 / (std::sqrt(static_cast<double>(w.slot2)) + r.rule.epsilon));
}

void adamw(const Rates& r, Weight w) {
  update_moments(r.rule, w.gradient, w);
  const double mean = w.slot1 / r.correction1, square = w.slot2 / r.correction2;
  const double direction = w.factor * (mean / (std::sqrt(square) + r.rule.epsilon));
  w.value = narrow(w.value - r.rate * (direction + w.decay * w.value));
}

void step(const Rates& rates, Weight weight) {
  switch (rates.rule.kind) {
    case nn::OptimizerKind::sgd:
      return sgd(rates, weight);
    case nn::OptimizerKind::nag:
      return nag(rates, rates.rule.momentum, weight);
    case nn::OptimizerKind::adam:
      return adam(rates, weight);
    case nn::OptimizerKind::adamw:
      return adamw(rates, weight);
    case nn::OptimizerKind::muon:
      return nag(rates, rates.rule.rest_momentum, weight);
  }
}

}  // namespace

void update_parameters(const nn::Graph& graph, std::span<const float> gradients, double count, const Update& update,
                       ModelState& state) {
  const nn::Optimizer& rule = update.rule;
  const auto slots = static_cast<std::size_t>(nn::optimizer_slots(rule.kind));
  const std::size_t parameters = state.parameters.size();
  if (state.optimizer.empty()) state.optimizer.assign(slots * parameters, 0.0f);
  DTRAIN_CHECK(state.optimizer.size() == slots * parameters, "the optimizer state is another rule's");
  const std::uint64_t t = ++state.updates;
  const Rates rates{rule, update.learning_rate, 1 - power(rule.beta1, t), 1 - power(rule.beta2, t)};
  const std::vector<bool> held = held_parameters(graph);
  const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
  const bool has_matrices = rule.kind == nn::OptimizerKind::muon;
  if (has_matrices) move_matrices(graph, gradients, count, update, state);
  float* const slot1 = state.optimizer.data();
  float* const slot2 = slot1 + (slots - 1) * parameters;
  for (std::size_t tensor = 0; tensor < graph.parameters.size(); ++tensor) {
    const nn::TensorView& view = graph.parameters[tensor];
    if (held[tensor] || (has_matrices && groups[tensor] == nn::ParameterGroup::matrix)) continue;
    const double decay = view.decays() ? rule.weight_decay : 0.0, factor = nn::lr_factor(rule, groups[tensor]);
    for (std::int64_t k = view.offset; k < view.offset + view.size; ++k) {
      step(rates, {state.parameters[k], slot1[k], slot2[k], gradients[k] / count, decay, factor});
    }
  }
}

}  // namespace dtrain::backend::reference
