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

// What all tensors share in step number `step`, from 1 on. Gradients are divided by `count`.
StepNumbers numbers_of(const Update& update, double count, std::uint64_t step) {
  const nn::Optimizer& rule = update.rule;
  const nn::NadamShares nadam = nn::nadam_shares(rule, step);
  return {.count = count,
          .rate = update.learning_rate,
          .momentum = rule.kind == nn::OptimizerKind::muon ? rule.rest_momentum : rule.momentum,
          .beta1 = rule.beta1,
          .beta2 = rule.beta2,
          .epsilon = rule.epsilon,
          .correction1 = 1 - power(rule.beta1, step),
          .correction2 = 1 - power(rule.beta2, step),
          .of_gradient = nadam.of_gradient,
          .of_mean = nadam.of_mean,
          .most = most_of(rule)};
}

// Moves the weights [first, first + count), all of one tensor, by a rule that looks at each alone.
void step_range(const Kernels& kernels, nn::OptimizerKind kind, const StepNumbers& numbers, const float* gradients,
                ModelState& state, std::int64_t first, std::int64_t count) {
  const float* const gradient = gradients + first;
  float* const weight = state.parameters.data() + first;
  float* const slot1 = state.optimizer.data() + first;
  float* const slot2 = slot1 + state.parameters.size();  // of rules with two slots only
  switch (kind) {
    case nn::OptimizerKind::sgd:
      return kernels.sgd(numbers, gradient, weight, slot1, count);
    case nn::OptimizerKind::nag:
    case nn::OptimizerKind::muon:  // of tensors that are no matrices
      return kernels.nag(numbers, gradient, weight, slot1, count);
    case nn::OptimizerKind::adam:
      return kernels.adam(numbers, gradient, weight, slot1, slot2, count);
    case nn::OptimizerKind::adamw:
      return kernels.adamw(numbers, gradient, weight, slot1, slot2, count);
    case nn::OptimizerKind::rmsprop:
      return kernels.rmsprop(numbers, gradient, weight, slot1, count);
    case nn::OptimizerKind::adagrad:
      return kernels.adagrad(numbers, gradient, weight, slot1, count);
    case nn::OptimizerKind::adamax:
      return kernels.adamax(numbers, gradient, weight, slot1, slot2, count);
    case nn::OptimizerKind::nadam:
      return kernels.nadam(numbers, gradient, weight, slot1, slot2, count);
    case nn::OptimizerKind::adadelta:
      return kernels.adadelta(numbers, gradient, weight, slot1, slot2, count);
    case nn::OptimizerKind::signum:
      return kernels.signum(numbers, gradient, weight, slot1, count);
    case nn::OptimizerKind::ftml:
      return kernels.ftml(numbers, gradient, weight, slot1, count);
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

// By tensor: `all`, and the tensor's own decay and factor on the learning rate.
std::vector<StepNumbers> numbers_of_tensors(const nn::Graph& graph, const nn::Optimizer& rule, const StepNumbers& all) {
  const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
  const std::vector<float> shares = nn::layer_shares(graph, rule.layer_decay);
  std::vector<StepNumbers> numbers(graph.parameters.size(), all);
  for (std::size_t tensor = 0; tensor < numbers.size(); ++tensor) {
    numbers[tensor].decay = nn::decay_of(rule, graph.parameters[tensor]) * shares[tensor];
    numbers[tensor].factor = nn::lr_factor(rule, groups[tensor]) * shares[tensor];
  }
  return numbers;
}

// What all parts of one step read.
struct StepInputs {
  const nn::Graph& graph;
  const Kernels& kernels;
  const nn::Optimizer& rule;
  std::span<const float> contribution;  // sums over the samples; it begins with the gradients
  const InParts& in_parts;
};

// The rule's slots, of zeros before the first step.
void ensure_slots(const nn::Optimizer& rule, ModelState& state) {
  const std::size_t size = static_cast<std::size_t>(nn::optimizer_slots(rule.kind)) * state.parameters.size();
  if (state.optimizer.empty()) state.optimizer.assign(size, 0.0f);
  DTRAIN_CHECK(state.optimizer.size() == size, "the optimizer state is another rule's");
}

// What gradients are divided by: the number of samples, and more where the norm of their mean is too great.
double divisor(const StepInputs& step, double count, const std::vector<bool>& held) {
  if (!(step.rule.clip_norm > 0)) return count;
  const double norm = length_of(step.kernels, chunks_of(step.graph, held), step.contribution, step.in_parts);
  return count * std::max(1.0, (norm / count + nn::Optimizer::kNormEpsilon) / step.rule.clip_norm);
}

// The tensors that Muon moves.
void add_matrices(const nn::Graph& graph, std::vector<bool>& tensors) {
  const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
  for (std::size_t tensor = 0; tensor < groups.size(); ++tensor) {
    tensors[tensor] = tensors[tensor] || groups[tensor] == nn::ParameterGroup::matrix;
  }
}

// The tensors that are not `apart`, weight by weight: each part has its share of the flat buffer, whose bounds may lie
// within a tensor.
void move_each_weight(const StepInputs& step, const std::vector<StepNumbers>& numbers, const std::vector<bool>& apart,
                      ModelState& state) {
  const std::int64_t parameters = step.graph.parameter_count;
  step.in_parts([&](int part, int parts) {
    const std::int64_t begin = parameters * part / parts, end = parameters * (part + 1) / parts;
    for (std::size_t tensor = 0; tensor < step.graph.parameters.size(); ++tensor) {
      const nn::TensorView& view = step.graph.parameters[tensor];
      const std::int64_t first = std::max(begin, view.offset), last = std::min(end, view.offset + view.size);
      if (apart[tensor] || first >= last) continue;
      step_range(step.kernels, step.rule.kind, numbers[tensor], step.contribution.data(), state, first, last - first);
    }
  });
}

void update_average(const StepInputs& step, ModelState& state) {
  const double share = 1 - nn::average_decay(step.rule, state.updates);
  const auto parameters = static_cast<std::int64_t>(state.parameters.size());
  step.in_parts([&](int part, int parts) {
    const std::int64_t begin = parameters * part / parts, end = parameters * (part + 1) / parts;
    step.kernels.move_average(share, state.parameters.data() + begin, state.average.data() + begin, end - begin);
  });
  step.kernels.move_average(share, state.statistics.data(), state.average.data() + parameters,
                            static_cast<std::int64_t>(state.statistics.size()));
}

}  // namespace

// Rules that look at whole tensors move theirs first; what is left goes weight by weight.
void apply_update(const nn::Graph& graph, const Kernels& kernels, std::span<const float> contribution,
                  const Update& update, const InParts& in_parts, Muon& muon, LayerWise& layer_wise, ModelState& state) {
  const nn::Optimizer& rule = update.rule;
  const StepInputs step{graph, kernels, rule, contribution, in_parts};
  const ContributionLayout layout(graph);
  DTRAIN_CHECK(static_cast<std::int64_t>(contribution.size()) == layout.size(), "not this graph's contribution");
  const double count = metrics_of(layout, contribution).count;
  DTRAIN_CHECK(count > 0, "a step without samples");
  ensure_slots(rule, state);
  begin_average(rule, state);

  std::vector<bool> apart = held_parameters(graph);  // tensors that stay, and then those that are moved already
  const double divided_by = divisor(step, count, apart);
  ++state.updates;
  const std::vector<StepNumbers> numbers =
      numbers_of_tensors(graph, rule, numbers_of(update, divided_by, state.updates));
  if (rule.kind == nn::OptimizerKind::muon) {
    muon.move_matrices(contribution, divided_by, update, in_parts, state);
    add_matrices(graph, apart);
  }
  if (nn::is_layer_wise(rule.kind)) {
    layer_wise.move(kernels, rule, numbers, chunks_of(graph, apart), contribution, in_parts, state);
    apart.assign(apart.size(), true);
  }
  move_each_weight(step, numbers, apart, state);

  update_statistics(graph, contribution.subspan(static_cast<std::size_t>(layout.gradients)), count, state);
  if (rule.average > 0) update_average(step, state);
}

}  // namespace dtrain::backend::cpu
