#include "optimizer.hpp"

#include <algorithm>
#include <cmath>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "muon.hpp"

namespace dtrain::backend::reference {
namespace {

// One weight's place in the flat buffers; slot2 is read by rules with two slots only.
struct Weight {
  float& value;
  float& slot1;
  float& slot2;
  double gradient;  // mean over the samples, cut, without decay
  double decay;     // 0 where the tensor does not decay
  double factor;    // of the tensor's group
};

// What adam's rules share: the learning rate and the corrections of step t.
struct Rates {
  const nn::Optimizer& rule;
  double rate;
  double correction1, correction2;  // 1 - beta^t
  nn::NadamShares nadam;
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

void rmsprop(const Rates& r, Weight w) {
  const double gradient = w.gradient + w.decay * w.value;
  w.slot1 = narrow(static_cast<double>(r.rule.beta2) * w.slot1 + (1.0 - r.rule.beta2) * gradient * gradient);
  const double root = std::sqrt(static_cast<double>(w.slot1) + r.rule.epsilon);
  w.value = narrow(w.value - w.factor * r.rate * gradient / root);
}

void adagrad(const Rates& r, Weight w) {
  w.slot1 = narrow(w.slot1 + w.gradient * w.gradient);
  const double root = std::sqrt(static_cast<double>(w.slot1) + r.rule.epsilon);
  w.value = narrow(w.value - r.rate * (w.factor * w.gradient / root + w.decay * w.value));
}

void adamax(const Rates& r, Weight w) {
  const double gradient = w.gradient + w.decay * w.value;
  w.slot1 = narrow(static_cast<double>(r.rule.beta1) * w.slot1 + (1.0 - r.rule.beta1) * gradient);
  w.slot2 = narrow(std::max(static_cast<double>(r.rule.beta2) * w.slot2, std::abs(gradient) + r.rule.epsilon));
  w.value = narrow(w.value - w.factor * r.rate / r.correction1 * w.slot1 / w.slot2);
}

void nadam(const Rates& r, Weight w) {
  const double gradient = w.gradient + w.decay * w.value;
  update_moments(r.rule, gradient, w);
  const double direction = r.nadam.of_gradient * gradient + r.nadam.of_mean * w.slot1;
  const double root = std::sqrt(w.slot2 / r.correction2) + r.rule.epsilon;
  w.value = narrow(w.value - w.factor * r.rate * direction / root);
}

void adadelta(const Rates& r, Weight w) {
  const double gradient = w.gradient + w.decay * w.value, rho = r.rule.beta2, epsilon = r.rule.epsilon;
  w.slot1 = narrow(rho * w.slot1 + (1 - rho) * gradient * gradient);
  const double step = std::sqrt(w.slot2 + epsilon) / std::sqrt(w.slot1 + epsilon) * gradient;
  w.slot2 = narrow(rho * w.slot2 + (1 - rho) * step * step);
  w.value = narrow(w.value - w.factor * r.rate * step);
}

void signum(const Rates& r, Weight w) {
  const double gradient = w.gradient + w.decay * w.value, momentum = r.rule.momentum;
  w.slot1 = narrow(momentum * w.slot1 + (1 - momentum) * gradient);
  const double sign = w.slot1 > 0 ? 1 : w.slot1 < 0 ? -1 : 0;
  w.value = narrow(w.value - w.factor * r.rate * sign);
}

void ftml(const Rates& r, Weight w) {
  const double gradient = w.gradient + w.decay * w.value;
  w.slot1 = narrow(static_cast<double>(r.rule.beta2) * w.slot1 + (1.0 - r.rule.beta2) * gradient * gradient);
  const double root = std::sqrt(w.slot1 / r.correction2) + r.rule.epsilon;
  w.value = narrow(w.value - w.factor * r.rate * (1.0 - r.rule.beta1) / r.correction1 * gradient / root);
}

// All weights of one tensor.
struct Tensor {
  std::span<float> values, slot1, slot2;
  std::span<const double> gradients;
  double decay, factor;
  bool is_weight;  // not a bias, gamma or beta
  Weight weight(std::size_t k) const { return {values[k], slot1[k], slot2[k], gradients[k], decay, factor}; }
};

void lamb(const Rates& r, const Tensor& t) {
  std::vector<double> directions(t.values.size());
  for (std::size_t k = 0; k < directions.size(); ++k) {
    const Weight w = t.weight(k);
    update_moments(r.rule, w.gradient, w);
    const double mean = w.slot1 / r.correction1, square = w.slot2 / r.correction2;
    directions[k] = narrow(mean / (std::sqrt(square) + r.rule.epsilon) + t.decay * w.value);
  }
  const double weights = norm(t.values), length = norm(directions);
  const double ratio = t.is_weight && weights > 0 && length > 0 ? weights / length : 1;
  for (std::size_t k = 0; k < directions.size(); ++k) {
    t.values[k] = narrow(t.values[k] - t.factor * r.rate * ratio * directions[k]);
  }
}

void lars(const Rates& r, const Tensor& t) {
  std::vector<double> directions(t.gradients.size());
  std::ranges::transform(t.gradients, directions.begin(), narrow);
  const double weights = norm(t.values), length = norm(directions);
  const bool adapts = t.is_weight && weights > 0 && length > 0;
  const double ratio = adapts ? r.rule.kTrust * weights / (length + t.decay * weights + r.rule.epsilon) : 1;
  for (std::size_t k = 0; k < directions.size(); ++k) {
    const double gradient = t.factor * directions[k] + t.decay * t.values[k];
    t.slot1[k] = narrow(r.rule.momentum * static_cast<double>(t.slot1[k]) - r.rate * ratio * gradient);
    t.values[k] += t.slot1[k];
  }
}

// The means of the gradients, cut as the rule says; 0 where nothing is learned.
std::vector<double> cut_gradients(const nn::Graph& graph, const std::vector<bool>& held, std::span<const float> sums,
                                  double count, const nn::Optimizer& rule) {
  std::vector<double> gradients(sums.size(), 0.0);
  for (std::size_t tensor = 0; tensor < graph.parameters.size(); ++tensor) {
    const nn::TensorView& view = graph.parameters[tensor];
    if (held[tensor]) continue;
    for (std::int64_t k = view.offset; k < view.offset + view.size; ++k) gradients[k] = sums[k] / count;
  }
  if (rule.clip_norm > 0) {
    const double length = norm(gradients) + rule.kNormEpsilon;
    if (length > rule.clip_norm) {
      for (double& gradient : gradients) gradient *= rule.clip_norm / length;
    }
  }
  if (rule.clip_gradient > 0) {
    const double most = rule.clip_gradient;
    for (double& gradient : gradients) gradient = std::clamp(gradient, -most, most);
  }
  return gradients;
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
    case nn::OptimizerKind::rmsprop:
      return rmsprop(rates, weight);
    case nn::OptimizerKind::adagrad:
      return adagrad(rates, weight);
    case nn::OptimizerKind::adamax:
      return adamax(rates, weight);
    case nn::OptimizerKind::nadam:
      return nadam(rates, weight);
    case nn::OptimizerKind::adadelta:
      return adadelta(rates, weight);
    case nn::OptimizerKind::signum:
      return signum(rates, weight);
    case nn::OptimizerKind::ftml:
      return ftml(rates, weight);
    case nn::OptimizerKind::lamb:
    case nn::OptimizerKind::lars:
      return;  // by tensor
  }
}

void step(const Rates& rates, const Tensor& tensor) {
  if (rates.rule.kind == nn::OptimizerKind::lamb) return lamb(rates, tensor);
  if (rates.rule.kind == nn::OptimizerKind::lars) return lars(rates, tensor);
  for (std::size_t k = 0; k < tensor.values.size(); ++k) step(rates, tensor.weight(k));
}

}  // namespace

void update_parameters(const nn::Graph& graph, std::span<const float> sums, double count, const Update& update,
                       ModelState& state) {
  const nn::Optimizer& rule = update.rule;
  const auto slots = static_cast<std::size_t>(nn::optimizer_slots(rule.kind));
  const std::size_t parameters = state.parameters.size();
  if (state.optimizer.empty()) state.optimizer.assign(slots * parameters, 0.0f);
  DTRAIN_CHECK(state.optimizer.size() == slots * parameters, "the optimizer state is another rule's");
  const std::uint64_t t = ++state.updates;
  const Rates rates{rule, update.learning_rate, 1 - power(rule.beta1, t), 1 - power(rule.beta2, t),
                    nn::nadam_shares(rule, t)};
  const std::vector<bool> held = held_parameters(graph);
  const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
  const std::vector<float> shares = nn::layer_shares(graph, rule.layer_decay);
  const bool has_matrices = rule.kind == nn::OptimizerKind::muon;
  const std::vector<double> gradients = cut_gradients(graph, held, sums, count, rule);
  if (has_matrices) move_matrices(graph, gradients, update, state);
  const std::span slot1(state.optimizer.data(), parameters);
  const std::span slot2(slot1.data() + (slots - 1) * parameters, parameters);
  for (std::size_t tensor = 0; tensor < graph.parameters.size(); ++tensor) {
    const nn::TensorView& view = graph.parameters[tensor];
    if (held[tensor] || (has_matrices && groups[tensor] == nn::ParameterGroup::matrix)) continue;
    const auto part = [&](auto all) { return all.subspan(view.offset, view.size); };
    step(rates, Tensor{.values = part(std::span(state.parameters)),
                       .slot1 = part(slot1),
                       .slot2 = part(slot2),
                       .gradients = part(std::span(gradients)),
                       .decay = nn::decay_of(rule, view) * shares[tensor],
                       .factor = nn::lr_factor(rule, groups[tensor]) * shares[tensor],
                       .is_weight = view.role == nn::TensorRole::weight});
  }
}

}  // namespace dtrain::backend::reference
