// The optimizer rules of <dtrain/nn/optimizer.hpp> on flat buffers.
#pragma once

#include <span>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend::reference {

// One step. `sums`: of gradients over `count` samples, graph.parameter_count elements. Moves state.parameters and
// state.optimizer (made of zeros when empty) and counts the update.
void update_parameters(const nn::Graph& graph, std::span<const float> sums, double count, const Update& update,
                       ModelState& state);

}  // namespace dtrain::backend::reference
