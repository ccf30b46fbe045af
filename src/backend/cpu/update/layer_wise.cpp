#include "layer_wise.hpp"

#include <algorithm>
#include <cmath>

namespace dtrain::backend::cpu {
namespace {

constexpr std::int64_t kTensorChunk = 1 << 15;

struct Squares {
  double direction = 0, weight = 0;
};

std::vector<Squares> squares_of_tensors(std::size_t tensors, const std::vector<TensorChunk>& chunks) {
  std::vector<Squares> squares(tensors);
  for (const TensorChunk& chunk : chunks) {
    squares[chunk.tensor].direction += chunk.squares;
    squares[chunk.tensor].weight += chunk.weight_squares;
  }
  return squares;
}

// What the learning rate of a tensor is multiplied with.
double ratio(const nn::Optimizer& rule, bool is_weight, double decay, const Squares& squares) {
  const double weight = std::sqrt(squares.weight), direction = std::sqrt(squares.direction);
  if (!is_weight || !(weight > 0) || !(direction > 0)) return 1;
  if (rule.kind == nn::OptimizerKind::lamb) return weight / direction;
  return nn::Optimizer::kTrust * weight / (direction + decay * weight + rule.epsilon);
}

}  // namespace

std::vector<TensorChunk> chunks_of(const nn::Graph& graph, const std::vector<bool>& apart) {
  std::vector<TensorChunk> chunks;
  for (std::size_t tensor = 0; tensor < graph.parameters.size(); ++tensor) {
    const nn::TensorView& view = graph.parameters[tensor];
    if (apart[tensor]) continue;
    for (std::int64_t first = 0; first < view.size; first += kTensorChunk) {
      chunks.push_back({.tensor = tensor,
                        .is_weight = view.role == nn::TensorRole::weight,
                        .first = view.offset + first,
                        .count = std::min(kTensorChunk, view.size - first)});
    }
  }
  return chunks;
}

double length_of(const Kernels& kernels, std::vector<TensorChunk> chunks, std::span<const float> gradients,
                 const InParts& in_parts) {
  share(chunks, in_parts, [&](TensorChunk& chunk, int) {
    chunk.squares = kernels.sum_of_squares(gradients.data() + chunk.first, chunk.count);
  });
  double squares = 0;
  for (const TensorChunk& chunk : chunks) squares += chunk.squares;
  return std::sqrt(squares);
}

// First the directions and their lengths, for a step depends on the length of the whole tensor; then the steps.
void LayerWise::move(const Kernels& kernels, const nn::Optimizer& rule, std::span<const StepNumbers> numbers,
                     std::vector<TensorChunk> chunks, std::span<const float> gradients, const InParts& in_parts,
                     ModelState& state) {
  const std::size_t parameters = state.parameters.size();
  directions_.grow(parameters * sizeof(float));
  float *const directions = directions_.as<float>(), *const weights = state.parameters.data();
  float *const slot1 = state.optimizer.data(), *const slot2 = slot1 + parameters;  // slot2: of lamb only
  const bool is_lamb = rule.kind == nn::OptimizerKind::lamb;

  share(chunks, in_parts, [&](TensorChunk& chunk, int) {
    const std::int64_t first = chunk.first;
    const StepNumbers& of_tensor = numbers[chunk.tensor];
    if (is_lamb) {
      kernels.lamb_direction(of_tensor, gradients.data() + first, weights + first, slot1 + first, slot2 + first,
                             directions + first, chunk.count);
    } else {
      kernels.lars_direction(of_tensor, gradients.data() + first, directions + first, chunk.count);
    }
    chunk.squares = kernels.sum_of_squares(directions + first, chunk.count);
    chunk.weight_squares = kernels.sum_of_squares(weights + first, chunk.count);
  });

  const std::vector<Squares> squares = squares_of_tensors(numbers.size(), chunks);
  share(chunks, in_parts, [&](const TensorChunk& chunk, int) {
    const std::int64_t first = chunk.first;
    StepNumbers of_tensor = numbers[chunk.tensor];
    of_tensor.rate *= ratio(rule, chunk.is_weight, of_tensor.decay, squares[chunk.tensor]);
    if (is_lamb) return kernels.lamb_step(of_tensor, directions + first, weights + first, chunk.count);
    of_tensor.count = 1;  // directions are means already
    kernels.sgd(of_tensor, directions + first, weights + first, slot1 + first, chunk.count);
  });
}

}  // namespace dtrain::backend::cpu
