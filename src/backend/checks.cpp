#include <dtrain/backend/checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include <dtrain/base/error.hpp>

namespace dtrain::backend {

void check_labels(const HostBatch& batch, int classes) {
  for (int i = 0; i < batch.n; ++i) {
    const std::int32_t label = batch.labels[i];
    if (label >= 0 && label < classes) continue;
    throw DataError(
        fmt::format("sample {} has label {}, but the network has {} classes", batch.sample_ids[i], label, classes),
        fmt::format("set setting 'num-classes' above the largest label, or correct the record's label (0 to {})",
                    classes - 1));
  }
}

void check_dtype(const Backend& backend, DType dtype) {
  if (const char* reason = backend.why_not(dtype)) {
    throw UsageError(fmt::format("the {} backend cannot compute in {}: {}", backend.name(), dtype_name(dtype), reason),
                     "use setting 'dtype' float32");
  }
}

std::vector<bool> held_parameters(const nn::Graph& graph) {
  std::vector<bool> held(graph.parameters.size(), false);
  for (const nn::Node& node : graph.nodes) {
    for (std::size_t which = 0; which < node.parameters.size(); ++which) {
      held[static_cast<std::size_t>(node.parameters[which])] = nn::is_held(node, which);
    }
  }
  return held;
}

void begin_average(const nn::Optimizer& rule, ModelState& state) {
  if (rule.average == 0 || !state.average.empty()) return;
  state.average.reserve(state.parameters.size() + state.statistics.size());
  state.average = state.parameters;
  state.average.insert(state.average.end(), state.statistics.begin(), state.statistics.end());
}

void check_average(const ModelState& state) {
  DTRAIN_CHECK(state.average.empty() || state.average.size() == state.parameters.size() + state.statistics.size(),
               "another graph's average");
}

void exchange_average(ModelState& state) {
  if (state.average.empty()) return;
  const auto behind = std::ranges::swap_ranges(state.parameters, state.average).in2;
  std::ranges::swap_ranges(state.statistics, std::ranges::subrange(behind, state.average.end()));
}

HostBatch samples_of(const HostBatch& batch, const nn::Graph& graph, const ShardRange& shard) {
  DTRAIN_CHECK(batch.images || batch.n == 0, "this backend takes images of floats");
  return {.n = shard.count,
          .images = batch.images + shard.first * graph.input().size(),
          .labels = batch.labels + shard.first,
          .sample_ids = batch.sample_ids + shard.first,
          .partners = batch.partners ? batch.partners + shard.first : nullptr,
          .shares = batch.shares ? batch.shares + shard.first : nullptr,
          .objects = batch.objects ? batch.objects + shard.first : nullptr};
}

}  // namespace dtrain::backend
