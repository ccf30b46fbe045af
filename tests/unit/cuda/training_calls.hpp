// The calls of a training step, to look at: nothing may run them.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/nn/graph.hpp>

#include "lowering.hpp"

namespace dtrain::backend::cuda {

inline std::vector<Call> training_calls(nn::Graph graph, DType dtype, int n) {
  auto* const somewhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
  auto* const floats = reinterpret_cast<float*>(somewhere);
  const Model model(std::move(graph), dtype, 1);
  Program program = lower_training(model);
  program.plan(n);
  Binding binding{.n = n, .arena = somewhere, .offsets = &program.offsets()};
  binding.weights = binding.weight_gradients = somewhere;
  binding.parameters = binding.statistics = binding.contribution = binding.coefficients = floats;
  return program.bind(binding);
}

}  // namespace dtrain::backend::cuda
