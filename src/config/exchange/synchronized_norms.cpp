#include "synchronized_norms.hpp"

#include <fmt/format.h>

#include <dtrain/nn/synchronized_norms.hpp>

#include "conflicts.hpp"

namespace dtrain::config {

void bind_synchronized_norms(OptionSet& set, TrainOptions& options) {
  set.add("--sync-bn", options.synchronized_norms,
          "compute mean and variance of each batch norm over all images of a step, instead of those of a logical "
          "shard, for shards of few images; all workers exchange them at each norm. A resumed run keeps the setting of "
          "its checkpoint");
}

void check_synchronized_norms(const nn::Graph& graph, const TrainOptions& options, const backend::Backend& backend) {
  if (!nn::has_synchronized_norms(graph)) return;
  refuse("--sync-bn",
         {{backend.name() != "cpu",
           fmt::format("--device {}: only the cpu backend computes all shards of a step together", backend.name()),
           "use --device cpu, or leave --sync-bn out and give each shard more images"},
          {options.local.any(), "--local-steps: replicas take their steps each for itself", "leave one of them out"},
          {options.job.is_by_servers(), "--kv-store dist_async or servers: their workers take steps each for itself",
           "use --kv-store dist_sync"}});
}

std::string synchronized_norms_line(int shards) {
  return fmt::format("batch norms take the statistics of a whole step: {} shards meet at each", shards);
}

}  // namespace dtrain::config
