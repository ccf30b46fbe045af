// --sync-bn: batch norms that count over all shards of a step (nn/synchronized_norms.hpp).
#pragma once

#include "config/train_options.hpp"

namespace dtrain::config {

void bind_synchronized_norms(OptionSet& set, TrainOptions& options);

// Throws UsageError where a run of this network cannot have them.
void check_synchronized_norms(const nn::Graph& graph, const TrainOptions& options, const backend::Backend& backend);

// The line that says what it means for this run.
std::string synchronized_norms_line(int shards);

}  // namespace dtrain::config
