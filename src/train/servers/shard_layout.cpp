#include "shard_layout.hpp"

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

void add_range(std::vector<FloatRange>& ranges, const nn::TensorView& view) {
  if (!ranges.empty() && ranges.back().first + ranges.back().size == view.offset) {
    ranges.back().size += view.size;
  } else {
    ranges.push_back({view.offset, view.size});
  }
}

std::int64_t floats_in(const std::vector<FloatRange>& ranges) {
  std::int64_t floats = 0;
  for (const FloatRange& range : ranges) floats += range.size;
  return floats;
}

std::int64_t metrics_of_graph(const nn::Graph& graph) { return backend::ContributionLayout(graph).metrics; }

// Calls part(flat, packed, count) for each range of a contribution of the graph.
template <typename Part>
void each_part(const ShardLayout& layout, Part part) {
  const backend::ContributionLayout whole(layout.graph);
  std::int64_t packed = 0;
  const auto add = [&](std::int64_t flat, std::int64_t count) {
    part(flat, packed, count);
    packed += count;
  };
  for (const FloatRange& range : layout.parameters) add(range.first, range.size);
  for (const FloatRange& range : layout.statistics) add(whole.gradients + range.first, range.size);
  add(whole.gradients + whole.statistics, whole.metrics);
}

// Calls part(buffer, range) for each range of a state of so many slots.
template <typename State, typename Part>
void each_range(const ShardLayout& layout, State& state, std::size_t slots, bool average, Part part) {
  const std::int64_t parameters = layout.graph.parameter_count;
  const auto all = [&](auto& buffer, const std::vector<FloatRange>& ranges, std::int64_t offset) {
    for (const FloatRange& range : ranges) part(buffer, FloatRange{offset + range.first, range.size});
  };
  all(state.parameters, layout.parameters, 0);
  all(state.statistics, layout.statistics, 0);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    all(state.optimizer, layout.parameters, static_cast<std::int64_t>(slot) * parameters);
  }
  if (!average) return;
  all(state.average, layout.parameters, 0);
  all(state.average, layout.statistics, parameters);
}

std::size_t slots_of(const ShardLayout& layout, const backend::ModelState& state) {
  const auto parameters = static_cast<std::size_t>(layout.graph.parameter_count);
  return parameters == 0 ? 0 : state.optimizer.size() / parameters;
}

}  // namespace

std::int64_t ShardLayout::contribution_size() const {
  return parameter_count + statistic_count + metrics_of_graph(graph);
}

void ShardLayout::pack(std::span<const float> contribution, std::span<float> packed) const {
  each_part(*this, [&](std::int64_t flat, std::int64_t at, std::int64_t count) {
    std::copy_n(contribution.begin() + flat, count, packed.begin() + at);
  });
}

void ShardLayout::unpack(std::span<const float> packed, std::span<float> contribution) const {
  each_part(*this, [&](std::int64_t flat, std::int64_t at, std::int64_t count) {
    std::copy_n(packed.begin() + at, count, contribution.begin() + flat);
  });
}

std::vector<ShardLayout> cut_into_shards(const nn::Graph& graph, int servers) {
  DTRAIN_CHECK(servers > 0, "shards need a server");
  std::vector<ShardLayout> shards(static_cast<std::size_t>(servers));
  for (ShardLayout& shard : shards) {
    shard.graph = graph;
    for (nn::Node& node : shard.graph.nodes) node.learns_elsewhere = std::exchange(node.learns, false);
  }
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const nn::Node& node = graph.nodes[k];
    if (node.parameters.empty()) continue;
    const auto view = [&](int tensor) -> const nn::TensorView& {
      return graph.parameters[static_cast<std::size_t>(tensor)];
    };
    // A layer belongs where its middle lies.
    const std::int64_t begin = view(node.parameters.front()).offset;
    const std::int64_t end = view(node.parameters.back()).offset + view(node.parameters.back()).size;
    const std::int64_t middle = begin + (end - begin) / 2;
    ShardLayout& shard = shards[static_cast<std::size_t>(middle * servers / graph.parameter_count)];
    for (const int tensor : node.parameters) add_range(shard.parameters, view(tensor));
    for (const int which : node.statistics)
      add_range(shard.statistics, graph.statistics[static_cast<std::size_t>(which)]);
    shard.graph.nodes[k].learns = node.learns;
    shard.graph.nodes[k].learns_elsewhere = false;
  }
  for (ShardLayout& shard : shards) {
    shard.parameter_count = floats_in(shard.parameters);
    shard.statistic_count = floats_in(shard.statistics);
  }
  return shards;
}

std::vector<float> floats_of_shard(const ShardLayout& layout, const backend::ModelState& state) {
  std::vector<float> floats;
  const bool average = !state.average.empty();
  floats.reserve(shard_floats(layout, slots_of(layout, state), average));
  each_range(layout, state, slots_of(layout, state), average,
             [&](const std::vector<float>& buffer, const FloatRange& range) {
               const auto first = buffer.begin() + range.first;
               floats.insert(floats.end(), first, first + range.size);
             });
  return floats;
}

std::size_t shard_floats(const ShardLayout& layout, std::size_t slots, bool average) {
  const auto parameters = static_cast<std::size_t>(layout.parameter_count);
  const auto statistics = static_cast<std::size_t>(layout.statistic_count);
  return parameters * (1 + slots + (average ? 1 : 0)) + statistics * (average ? 2 : 1);
}

void put_shard(const ShardLayout& layout, std::span<const float> floats, backend::ModelState& state) {
  const std::size_t slots = slots_of(layout, state);
  const bool average = !state.average.empty();
  DTRAIN_CHECK(floats.size() == shard_floats(layout, slots, average), "the floats of another shard");
  auto next = floats.begin();
  each_range(layout, state, slots, average, [&](std::vector<float>& buffer, const FloatRange& range) {
    std::copy_n(next, range.size, buffer.begin() + range.first);
    next += range.size;
  });
}

}  // namespace dtrain::train
