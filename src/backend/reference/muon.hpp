// What the rule muon does with weights that are matrices.
#pragma once

#include <span>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend::reference {

// `gradients`: means. Moves the weights of nn::weight_matrices and their momentum, the first slot of state.optimizer.
void move_matrices(const nn::Graph& graph, std::span<const double> gradients, const Update& update, ModelState& state);

}  // namespace dtrain::backend::reference
