// What the rule muon does with weights that are matrices.
#pragma once

#include <cmath>
#include <span>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend::reference {

// The Euclidean norm of a tensor.
double norm(const auto& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// `gradients`: means. Moves the weights of nn::weight_matrices and their momentum, the first slot of state.optimizer.
void move_matrices(const nn::Graph& graph, std::span<const double> gradients, const Update& update, ModelState& state);

}  // namespace dtrain::backend::reference
