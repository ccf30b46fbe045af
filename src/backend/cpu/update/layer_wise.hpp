// What an update does with whole tensors: lengths, and the rules lamb and lars, whose steps depend on them. Sums go
// chunk by chunk in one order, whichever thread has a chunk.
#pragma once

#include <dtrain/backend/backend.hpp>

#include "../buffer.hpp"
#include "../kernels/kernels.hpp"
#include "in_parts.hpp"

namespace dtrain::backend::cpu {

// Elements [first, first + count) of the flat buffers, all of one tensor.
struct TensorChunk {
  std::size_t tensor = 0;
  bool is_weight = false;  // not a bias, gamma or beta
  std::int64_t first = 0, count = 0;
  double squares = 0, weight_squares = 0;
};
// The chunks of the tensors that are not `apart`, in the order of the tensors.
std::vector<TensorChunk> chunks_of(const nn::Graph& graph, const std::vector<bool>& apart);

// Root of the sum of squares of the gradients in these chunks.
double length_of(const Kernels& kernels, std::vector<TensorChunk> chunks, std::span<const float> gradients,
                 const InParts& in_parts);

// One thread at a time; keeps its scratch memory.
class LayerWise {
 public:
  // `numbers`: of each tensor. Moves the weights of these chunks, and the optimizer's state, by the rule lamb or lars.
  void move(const Kernels& kernels, const nn::Optimizer& rule, std::span<const StepNumbers> numbers,
            std::vector<TensorChunk> chunks, std::span<const float> gradients, const InParts& in_parts,
            ModelState& state);
  std::uint64_t bytes() const { return directions_.size(); }

 private:
  Buffer directions_;
};

}  // namespace dtrain::backend::cpu
