// Gradients against central differences of the loss, for every layer kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/random.hpp>

#include "common/problem.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

class Gradients : public ::testing::TestWithParam<Problem> {};

struct LossAndGradients {
  double loss = 0;
  std::vector<float> gradients;
};

LossAndGradients loss_of(const Problem& problem) {
  const auto executable = backend::make_reference_backend()->compile(problem.graph, {.max_samples = problem.n});
  executable->write_state(problem.state);
  const auto shards = split_samples(problem.n, 1);
  CollectingSink sink(problem.graph, shards);
  executable->enqueue(problem.batch(), shards, problem.key, sink);
  const std::vector<float> contribution = sink.sum();
  const backend::ContributionLayout layout(problem.graph);
  return {backend::metrics_of(layout, contribution).loss_sum,
          {contribution.begin(), contribution.begin() + layout.gradients}};
}

// Per tensor, along one random direction of length 1: (loss(w + h d) - loss(w - h d)) / 2h against gradient . d.
TEST_P(Gradients, AgreeWithDifferencesOfTheLoss) {
  const Problem& problem = GetParam();
  const std::vector<float> gradients = loss_of(problem).gradients;
  const std::vector<bool> held = backend::held_parameters(problem.graph);
  double largest = 0;
  for (const float gradient : gradients) largest = std::max(largest, std::abs(static_cast<double>(gradient)));
  for (std::size_t tensor = 0; tensor < problem.graph.parameters.size(); ++tensor) {
    const nn::TensorView& view = problem.graph.parameters[tensor];
    if (held[tensor]) {
      const auto first = gradients.begin() + view.offset;
      EXPECT_EQ(std::count(first, first + view.size, 0.0f), view.size) << view.name;
      continue;
    }
    RandomStream random(11, RandomUse::drawing, static_cast<std::uint32_t>(tensor), 0);
    std::vector<double> direction(static_cast<std::size_t>(view.size));
    double squares = 0, slope = 0;
    for (double& d : direction) {
      d = random.normal();
      squares += d * d;
    }
    Problem up = problem, down = problem;
    constexpr double h = 5e-4;  // small: a ReLU that bends between the two points costs accuracy
    for (std::size_t k = 0; k < direction.size(); ++k) {
      const double d = direction[k] / std::sqrt(squares);
      const std::size_t at = static_cast<std::size_t>(view.offset) + k;
      up.state.parameters[at] += static_cast<float>(h * d);
      down.state.parameters[at] -= static_cast<float>(h * d);
      const double moved = static_cast<double>(up.state.parameters[at]) - down.state.parameters[at];
      slope += moved / (2 * h) * gradients[at];
    }
    EXPECT_NEAR((loss_of(up).loss - loss_of(down).loss) / (2 * h), slope, 0.01 * largest) << view.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, Gradients, ::testing::ValuesIn(layer_problems()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Host, Gradients, ::testing::ValuesIn(host_problems()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Detection, Gradients, ::testing::ValuesIn(detection_problems()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Regions, Gradients, ::testing::ValuesIn(region_problems()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace dtrain::testing
