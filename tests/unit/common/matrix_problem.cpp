#include "matrix_problem.hpp"

#include <algorithm>
#include <cmath>

#include <dtrain/base/random.hpp>
#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::testing {
namespace {

using backend::DType;

std::vector<float> random_sum(const nn::Graph& graph) {
  RandomStream random(1, RandomUse::drawing, 0, 0);
  std::vector<float> sum(static_cast<std::size_t>(backend::ContributionLayout(graph).size()));
  for (float& value : sum) value = random.normal();
  sum.back() = 7;  // samples
  return sum;
}

double length(const std::vector<float>& values, const nn::WeightMatrix& of) {
  double squares = 0;
  for (std::int64_t k = of.first; k < of.first + of.size(); ++k) {
    const double value = values[static_cast<std::size_t>(k)];
    squares += value * value;
  }
  return std::sqrt(squares);
}

}  // namespace

Problem matrix_problem() {
  nn::GraphBuilder b("matrices", {3, 9, 7});
  const auto convolution = [&](const char* name, int from, nn::Convolution layer) {
    return b.add(name, layer, {from});
  };
  const auto norm = [&](const char* name, int from) { return b.add(name, nn::BatchNorm{}, {from}); };
  int x = convolution("tall", b.input(), {.out = 20, .bias = true});
  x = b.add("tanh", nn::Activation{.kind = nn::ActivationKind::tanh}, {x});
  x = convolution("wide", x, {.out = 7, .kernel_h = 3, .kernel_w = 3});
  x = b.add("pool", nn::Pooling{.kernel_h = 2, .kernel_w = 2}, {x});
  x = norm("wide_bn", x);
  x = convolution("grouped", x, {.out = 14, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .groups = 7});
  x = norm("grouped_bn", x);
  x = convolution("row", x, {.out = 1});
  x = convolution("one_number", x, {.out = 1});
  x = convolution("column", x, {.out = 5, .bias = true});
  x = b.add("hidden", nn::Dense{.out = 37}, {x});
  x = b.add("hidden_tanh", nn::Activation{.kind = nn::ActivationKind::tanh}, {x});
  x = b.add("deep", nn::Dense{.out = 300, .bias = false}, {x});
  x = b.add("broad", nn::Dense{.out = 70}, {x});
  x = b.add("broad_tanh", nn::Activation{.kind = nn::ActivationKind::tanh}, {x});
  return make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {x})), 5);
}

nn::Optimizer muon_of_odd_numbers() {
  return {.kind = nn::OptimizerKind::muon,
          .momentum = 0.6f,
          .weight_decay = 0.01f,
          .bias_lr_factor = 3,
          .head_lr_factor = 0.5f,
          .newton_schulz = {.steps = 2, .a = 3.0f, .b = -3.5f, .c = 1.6f},
          .rest_momentum = 0.8f};
}

std::vector<float> muon_step(const backend::Backend& backend, const nn::Graph& graph, DType dtype, int times) {
  const auto executable =
      backend.compile(graph, {.dtype = dtype, .max_samples = 1, .optimizer = nn::OptimizerKind::muon});
  backend::ModelState zero;
  zero.parameters.resize(static_cast<std::size_t>(graph.parameter_count));
  zero.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  for (int time = 0; time < times; ++time) {
    executable->write_state(zero);
    executable->apply(random_sum(graph), {{.kind = nn::OptimizerKind::muon, .weight_decay = 0}, 1});
  }
  return executable->state().parameters;
}

double muon_step_error(const backend::Backend& actual, const backend::Backend& judge, const nn::Graph& graph,
                       DType dtype) {
  const std::vector<float> expected = muon_step(judge, graph, DType::float32, 1);
  std::vector<float> difference = muon_step(actual, graph, dtype, 3);
  for (std::size_t k = 0; k < difference.size(); ++k) difference[k] -= expected[k];
  double most = 0;
  for (const nn::WeightMatrix& matrix : nn::weight_matrices(graph)) {
    const double share = length(difference, matrix) / length(expected, matrix);
    if (std::isnan(share)) return share;
    most = std::max(most, share);
  }
  return most;
}

double allowed_muon_error(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 1e-5;
    case DType::float16:
      return 0.005;
    case DType::bfloat16:
      return 0.03;
  }
  return 0;
}

}  // namespace dtrain::testing
