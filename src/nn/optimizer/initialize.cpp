#include <dtrain/nn/initialize.hpp>

#include <algorithm>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::nn {
namespace {

std::span<float> values_of(const TensorView& view, std::span<float> buffer) {
  return buffer.subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size));
}

// Each tensor draws from its own stream, so a tensor's values do not depend on the sizes of those before it.
void fill_normal(std::span<float> weight, double variance, std::uint64_t seed, std::uint32_t tensor) {
  RandomStream random(seed, RandomUse::initial_weights, tensor, 0);
  const auto deviation = static_cast<float>(portable_sqrt(variance));
  for (float& value : weight) value = deviation * random.normal();
}

void fill_between(std::span<float> weight, float bound, std::uint64_t seed, std::uint32_t tensor) {
  RandomStream random(seed, RandomUse::initial_weights, tensor, 0);
  for (float& value : weight) value = random.uniform(-bound, bound);
}

void fill_uniform(std::span<float> weight, double variance, std::uint64_t seed, std::uint32_t tensor) {
  fill_between(weight, static_cast<float>(portable_sqrt(3 * variance)), seed, tensor);
}

// Filters that hand on one channel each: 1 in the middle of the window, else 0.
void pass_channels_on(const TensorView& view, std::span<float> weight) {
  const std::int64_t inputs = view.shape[1], window = view.shape[2] * view.shape[3];
  const std::int64_t middle = view.shape[2] / 2 * view.shape[3] + view.shape[3] / 2;
  for (std::int64_t filter = 0; filter < std::min(view.shape[0], inputs); ++filter) {
    const std::span<float> values =
        weight.subspan(static_cast<std::size_t>(filter * inputs * window), static_cast<std::size_t>(inputs * window));
    std::ranges::fill(values, 0.0f);
    values[static_cast<std::size_t>(filter * window + middle)] = 1.0f;
  }
}

// By tensor; he for whatever is no convolution's weight.
std::vector<InitialWeight> initial_weights(const Graph& graph) {
  std::vector<InitialWeight> initial(graph.parameters.size(), InitialWeight::he);
  for (const Node& node : graph.nodes) {
    const auto* convolution = std::get_if<Convolution>(&node.layer);
    if (convolution) initial[static_cast<std::size_t>(node.parameters[0])] = convolution->initial;
  }
  return initial;
}

bool begins_rare(const Node& node) {
  const auto* convolution = std::get_if<Convolution>(&node.layer);
  return convolution && convolution->initial == InitialWeight::rare;
}

// Gains begin at 1, shifts at 0; what is not a layer's usual tensor as the layer says.
void fill_vectors(const Graph& graph, const Node& node, std::uint64_t seed, std::span<float> parameters) {
  constexpr double kPositionVariance = 0.02 * 0.02;
  constexpr double kRare = 0.01;
  for (const int index : node.parameters) {
    const TensorView& view = graph.parameters[static_cast<std::size_t>(index)];
    if (view.role == TensorRole::weight) continue;
    const std::span<float> values = values_of(view, parameters);
    if (std::holds_alternative<Position>(node.layer)) {
      fill_normal(values, kPositionVariance, seed, static_cast<std::uint32_t>(index));
    } else if (const auto* scale = std::get_if<LayerScale>(&node.layer)) {
      std::ranges::fill(values, scale->initial);
    } else if (begins_rare(node)) {
      std::ranges::fill(values, static_cast<float>(-portable_log((1 - kRare) / kRare)));
    } else {
      std::ranges::fill(values, view.role == TensorRole::gamma ? 1.0f : 0.0f);
    }
  }
}

void fill_weight(const TensorView& view, InitialWeight initial, std::uint64_t seed, std::uint32_t tensor,
                 std::span<float> weight) {
  constexpr double kSmallVariance = 0.01 * 0.01;
  const auto fan_in = static_cast<double>(view.size / view.shape.front());
  if (initial == InitialWeight::uniform) return fill_uniform(weight, 1 / fan_in, seed, tensor);
  if (initial == InitialWeight::small || initial == InitialWeight::rare) {
    return fill_normal(weight, kSmallVariance, seed, tensor);
  }
  const bool dirac = initial == InitialWeight::dirac;
  fill_normal(weight, (dirac ? 1.0 / 3 : 2.0) / fan_in, seed, tensor);
  if (dirac) pass_channels_on(view, weight);
}

// Of any initializer but the standard one.
void fill_weight(const TensorView& view, Initializer initializer, std::uint64_t seed, std::uint32_t tensor,
                 std::span<float> weight) {
  constexpr double kSlope = 0.25;  // MSRAPrelu's, of the activations that it expects
  constexpr double kNormalVariance = 0.01 * 0.01;
  constexpr float kUniformBound = 0.07f;
  const std::int64_t window = view.size / (view.shape[0] * view.shape[1]);
  const auto both_fans = static_cast<double>((view.shape[0] + view.shape[1]) * window);
  switch (initializer) {
    case Initializer::standard:
    case Initializer::xavier:
      return fill_uniform(weight, 2 / both_fans, seed, tensor);
    case Initializer::msra:
      return fill_normal(weight, 4 / (1 + kSlope * kSlope) / both_fans, seed, tensor);
    case Initializer::normal:
      return fill_normal(weight, kNormalVariance, seed, tensor);
    case Initializer::uniform:
      return fill_between(weight, kUniformBound, seed, tensor);
    case Initializer::one:
      return std::ranges::fill(weight, 1.0f), void();
    case Initializer::zero:
      return std::ranges::fill(weight, 0.0f), void();
  }
}

}  // namespace

void initialize_parameters(const Graph& graph, std::uint64_t seed, std::span<float> parameters,
                           Initializer initializer) {
  DTRAIN_CHECK(parameters.size() == static_cast<std::size_t>(graph.parameter_count), "not the graph's buffer");
  const std::vector<InitialWeight> initial = initial_weights(graph);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const TensorView& view = graph.parameters[i];
    const std::span<float> values = values_of(view, parameters);
    if (view.role != TensorRole::weight) continue;
    const auto tensor = static_cast<std::uint32_t>(i);
    if (initializer == Initializer::standard) {
      fill_weight(view, initial[i], seed, tensor, values);
    } else {
      fill_weight(view, initializer, seed, tensor, values);
    }
  }
  for (const Node& node : graph.nodes) fill_vectors(graph, node, seed, parameters);
}

void initialize_statistics(const Graph& graph, std::span<float> statistics) {
  DTRAIN_CHECK(statistics.size() == static_cast<std::size_t>(graph.statistic_count), "not the graph's buffer");
  for (const TensorView& view : graph.statistics) {
    std::ranges::fill(values_of(view, statistics), view.role == TensorRole::running_variance ? 1.0f : 0.0f);
  }
}

}  // namespace dtrain::nn
