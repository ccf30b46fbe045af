#include "model.hpp"

#include <algorithm>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::backend::cpu {
namespace {

double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

StepNumbers numbers_of(const Update& update, double count, std::uint64_t step) {
  const nn::Optimizer& rule = update.rule;
  StepNumbers s;
  s.count = count;
  s.rate = update.learning_rate;
  s.momentum = rule.kind == nn::OptimizerKind::muon ? rule.rest_momentum : rule.momentum;
  s.beta1 = rule.beta1;
  s.beta2 = rule.beta2;
  s.epsilon = rule.epsilon;
  s.correction1 = 1 - power(rule.beta1, step);
  s.correction2 = 1 - power(rule.beta2, step);
  const nn::NadamShares nadam = nn::nadam_shares(rule, step);
  s.of_gradient = nadam.of_gradient;
  s.of_mean = nadam.of_mean;
  s.most = most_of(rule);
  return s;
}

void step_range(const Kernels& kernels, nn::OptimizerKind kind, const StepNumbers& s, const float* gradient,
                ModelState& state, std::int64_t first, std::int64_t count) {
  float* const weight = state.parameters.data() + first;
  float* const slot1 = state.optimizer.data() + first;
  float* const slot2 = slot1 + state.parameters.size();  // of rules with two slots only
  switch (kind) {
    case nn::OptimizerKind::sgd:
      return kernels.sgd(s, gradient + first, weight, slot1, count);
    case nn::OptimizerKind::nag:
    case nn::OptimizerKind::muon:  // what is no matrix
      return kernels.nag(s, gradient + first, weight, slot1, count);
    case nn::OptimizerKind::adam:
      return kernels.adam(s, gradient + first, weight, slot1, slot2, count);
    case nn::OptimizerKind::adamw:
      return kernels.adamw(s, gradient + first, weight, slot1, slot2, count);
    case nn::OptimizerKind::rmsprop:
      return kernels.rmsprop(s, gradient + first, weight, slot1, count);
    case nn::OptimizerKind::adagrad:
      return kernels.adagrad(s, gradient + first, weight, slot1, count);
    case nn::OptimizerKind::adamax:
      return kernels.adamax(s, gradient + first, weight, slot1, slot2, count);
    case nn::OptimizerKind::nadam:
      return kernels.nadam(s, gradient + first, weight, slot1, slot2, count);
    case nn::OptimizerKind::adadelta:
      return kernels.adadelta(s, gradient + first, weight, slot1, slot2, count);
    case nn::OptimizerKind::signum:
      return kernels.signum(s, gradient + first, weight, slot1, count);
    case nn::OptimizerKind::ftml:
      return kernels.ftml(s, gradient + first, weight, slot1, count);
    case nn::OptimizerKind::lamb:
    case nn::OptimizerKind::lars:
      return;  // LayerWise
  }
}

// Running statistics take the weighted mean of the shards' statistics.
void update_statistics(const nn::Graph& graph, std::span<const float> weighted, double count, ModelState& state) {
  for (const nn::Node& node : graph.nodes) {
    if (!std::holds_alternative<nn::BatchNorm>(node.layer)) continue;
    const double momentum = nn::statistics_momentum(node);
    for (const int which : node.statistics) {
      const nn::TensorView& view = graph.statistics[static_cast<std::size_t>(which)];
      for (std::int64_t k = view.offset; k < view.offset + view.size; ++k) {
        float& running = state.statistics[static_cast<std::size_t>(k)];
        const double batch = weighted[static_cast<std::size_t>(k)] / count;
        running = static_cast<float>(momentum * running + (1 - momentum) * batch);
      }
    }
  }
}

std::vector<StepNumbers> numbers_of_tensors(const nn::Graph& graph, const nn::Optimizer& rule, const StepNumbers& all) {
  const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
  const std::vector<float> shares = nn::layer_shares(graph, rule.layer_decay);
  std::vector<StepNumbers> numbers(graph.parameters.size(), all);
  for (std::size_t tensor = 0; tensor < numbers.size(); ++tensor) {
    numbers[tensor].decay = graph.parameters[tensor].decays() ? rule.weight_decay * shares[tensor] : 0.0f;
    numbers[tensor].factor = nn::lr_factor(rule, groups[tensor]) * shares[tensor];
  }
  return numbers;
}

// What gradients are divided by: the number of samples, and more where their norm is too great.
double divisor(double count, const nn::Optimizer& rule, double norm) {
  return count * std::max(1.0, (norm / count + nn::Optimizer::kNormEpsilon) / rule.clip_norm);
}

void update_average(const Kernels& kernels, const nn::Optimizer& rule, const InParts& in_parts, ModelState& state) {
  const double share = 1 - nn::average_decay(rule, state.updates);
  const auto parameters = static_cast<std::int64_t>(state.parameters.size());
  in_parts([&](int part, int parts) {
    const std::int64_t begin = parameters * part / parts, end = parameters * (part + 1) / parts;
    kernels.move_average(share, state.parameters.data() + begin, state.average.data() + begin, end - begin);
  });
  kernels.move_average(share, state.statistics.data(), state.average.data() + parameters,
                       static_cast<std::int64_t>(state.statistics.size()));
}

}  // namespace

void apply_update(const nn::Graph& graph, const Kernels& kernels, std::span<const float> contribution,
                  const Update& update, const InParts& in_parts, Muon& muon, LayerWise& layer_wise, ModelState& state) {
  const ContributionLayout layout(graph);
  DTRAIN_CHECK(static_cast<std::int64_t>(contribution.size()) == layout.size(), "not this graph's contribution");
  const double count = metrics_of(layout, contribution).count;
  DTRAIN_CHECK(count > 0, "a step without samples");
  const auto slots = static_cast<std::size_t>(nn::optimizer_slots(update.rule.kind));
  if (state.optimizer.empty()) state.optimizer.assign(slots * state.parameters.size(), 0.0f);
  DTRAIN_CHECK(state.optimizer.size() == slots * state.parameters.size(), "the optimizer state is another rule's");

  const nn::Optimizer& rule = update.rule;
  begin_average(rule, state);
  std::vector<bool> apart = held_parameters(graph);  // what the loop below leaves alone
  double divided_by = count;
  if (rule.clip_norm > 0) {
    divided_by = divisor(count, rule, length_of(kernels, chunks_of(graph, apart), contribution, in_parts));
  }
  const std::vector<StepNumbers> numbers =
      numbers_of_tensors(graph, rule, numbers_of(update, divided_by, ++state.updates));
  if (rule.kind == nn::OptimizerKind::muon) {
    const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
    for (std::size_t k = 0; k < groups.size(); ++k) apart[k] = apart[k] || groups[k] == nn::ParameterGroup::matrix;
    muon.move_matrices(contribution, divided_by, update, in_parts, state);
  }
  if (nn::is_layer_wise(rule.kind)) {
    layer_wise.move(kernels, rule, numbers, chunks_of(graph, apart), contribution, in_parts, state);
    apart.assign(apart.size(), true);
  }
  in_parts([&](int part, int parts) {
    const std::int64_t begin = graph.parameter_count * part / parts, end = graph.parameter_count * (part + 1) / parts;
    for (std::size_t tensor = 0; tensor < graph.parameters.size(); ++tensor) {
      const nn::TensorView& view = graph.parameters[tensor];
      const std::int64_t first = std::max(begin, view.offset), last = std::min(end, view.offset + view.size);
      if (apart[tensor] || first >= last) continue;
      step_range(kernels, rule.kind, numbers[tensor], contribution.data(), state, first, last - first);
    }
  });
  update_statistics(graph, contribution.subspan(static_cast<std::size_t>(layout.gradients)), count, state);
  if (rule.average > 0) update_average(kernels, rule, in_parts, state);
}

}  // namespace dtrain::backend::cpu
