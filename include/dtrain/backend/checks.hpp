// What every backend asks of a batch and of a graph in the same words.
#pragma once

#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

// Throws DataError naming the first sample whose label is not in [0, classes).
void check_labels(const HostBatch& batch, int classes);

// Throws UsageError when `backend` cannot compute in `dtype`.
void check_dtype(const Backend& backend, DType dtype);

// Per tensor of Graph::parameters: true for frozen weights and for the gammas of batch norms with fix_gamma, for which
// the layer computes with 1 whatever the tensor holds. Their gradient is 0 and apply() leaves them (and their optimizer
// state) as they are.
std::vector<bool> held_parameters(const nn::Graph& graph);

// Puts a beginning average there where the rule asks for one and there is none: the parameters and statistics.
void begin_average(const nn::Optimizer& rule, ModelState& state);
// DTRAIN_CHECKs that an average is one of all parameters and statistics.
void check_average(const ModelState& state);
// Executable::exchange_average() where the state is on the host.
void exchange_average(ModelState& state);

// The samples [shard.first, shard.first + shard.count) as a batch of their own; images only.
HostBatch samples_of(const HostBatch& batch, const nn::Graph& graph, const ShardRange& shard);

}  // namespace dtrain::backend
