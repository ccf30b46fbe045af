#include "problem.hpp"

#include <cmath>
#include <ostream>

#include <dtrain/base/random.hpp>

namespace dtrain::testing {
namespace {

void fill_tensor(const nn::TensorView& view, RandomStream& random, std::span<float> buffer) {
  const auto values = buffer.subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size));
  const auto fan_in = static_cast<float>(view.size) / static_cast<float>(view.shape.front());
  for (float& value : values) {
    switch (view.role) {
      case nn::TensorRole::weight:
        value = random.normal() * std::sqrt(2.0f / fan_in);
        break;
      case nn::TensorRole::gamma:
        value = 1.0f + 0.2f * random.normal();
        break;
      case nn::TensorRole::bias:
      case nn::TensorRole::beta:
      case nn::TensorRole::running_mean:
        value = 0.2f * random.normal();
        break;
      case nn::TensorRole::running_variance:
        value = random.uniform(0.5f, 1.5f);
        break;
    }
  }
}

}  // namespace

Problem make_problem(nn::Graph graph, int n, std::uint64_t seed) {
  Problem problem;
  problem.name = graph.name;
  problem.n = n;
  problem.key = {.seed = seed + 0x100000000u, .epoch = 2};
  RandomStream random(seed, RandomUse::drawing, 0, 0);
  problem.state.parameters.resize(static_cast<std::size_t>(graph.parameter_count));
  problem.state.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  for (const nn::TensorView& view : graph.parameters) fill_tensor(view, random, problem.state.parameters);
  for (const nn::TensorView& view : graph.statistics) fill_tensor(view, random, problem.state.statistics);
  problem.images.resize(static_cast<std::size_t>(n * graph.input().size()));
  for (float& pixel : problem.images) pixel = random.normal();
  for (int i = 0; i < n; ++i) {
    problem.labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(graph.classes()))));
    problem.sample_ids.push_back(static_cast<std::uint32_t>(7919 * i + 3));
  }
  problem.graph = std::move(graph);
  return problem;
}

Problem with_two_labels(Problem problem) {
  for (int i = 0; i < problem.n; ++i) {
    problem.partners.push_back((problem.labels[static_cast<std::size_t>(i)] + i % 3) % problem.graph.classes());
    problem.shares.push_back(i % 4 == 3 ? static_cast<float>(i % 8 == 3) : 0.15f * static_cast<float>(1 + i % 6));
  }
  return problem;
}

void PrintTo(const Problem& problem, std::ostream* out) { *out << problem.name; }

}  // namespace dtrain::testing
