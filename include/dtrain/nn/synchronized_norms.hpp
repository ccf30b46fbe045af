// Batch norms whose statistics are those of all shards of a step: what PyTorch calls SyncBatchNorm (Peng et al. 2018,
// "MegDet").
#pragma once

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// Makes all batch norms such ones, also those that do not learn now. Throws UsageError where there is none.
void synchronize_norms(Graph& graph);

// Whether training needs other shards at its norms: one that learns is synchronized.
bool has_synchronized_norms(const Graph& graph);

}  // namespace dtrain::nn
