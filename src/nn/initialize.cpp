#include <dtrain/nn/initialize.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::nn {
namespace {

std::span<float> values_of(const TensorView& view, std::span<float> buffer) {
  return buffer.subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size));
}

// Each tensor draws from its own stream, so a tensor's values do not depend on the sizes of those before it.
void fill_he_normal(std::span<float> weight, std::int64_t fan_in, std::uint64_t seed, std::uint32_t tensor) {
  RandomStream random(seed, RandomUse::initial_weights, tensor, 0);
  const auto deviation = static_cast<float>(portable_sqrt(2.0 / static_cast<double>(fan_in)));
  for (float& value : weight) value = deviation * random.normal();
}

}  // namespace

void initialize_parameters(const Graph& graph, std::uint64_t seed, std::span<float> parameters) {
  DTRAIN_CHECK(parameters.size() == static_cast<std::size_t>(graph.parameter_count), "not the graph's buffer");
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const TensorView& view = graph.parameters[i];
    const std::span<float> values = values_of(view, parameters);
    if (view.role == TensorRole::weight) {
      fill_he_normal(values, view.size / view.shape.front(), seed, static_cast<std::uint32_t>(i));
    } else {
      std::ranges::fill(values, view.role == TensorRole::gamma ? 1.0f : 0.0f);
    }
  }
}

void initialize_statistics(const Graph& graph, std::span<float> statistics) {
  DTRAIN_CHECK(statistics.size() == static_cast<std::size_t>(graph.statistic_count), "not the graph's buffer");
  for (const TensorView& view : graph.statistics) {
    std::ranges::fill(values_of(view, statistics), view.role == TensorRole::running_variance ? 1.0f : 0.0f);
  }
}

}  // namespace dtrain::nn
