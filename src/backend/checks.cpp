#include <dtrain/backend/checks.hpp>

#include <fmt/format.h>

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

HostBatch samples_of(const HostBatch& batch, const nn::Graph& graph, const ShardRange& shard) {
  DTRAIN_CHECK(batch.images || batch.n == 0, "this backend takes images of floats");
  return {shard.count, batch.images + shard.first * graph.input().size(), batch.labels + shard.first,
          batch.sample_ids + shard.first};
}

}  // namespace dtrain::backend
