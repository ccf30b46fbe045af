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
  if (!(weight > 0) || !(direction > 0)) return 1;
  if (rule.kind == nn::OptimizerKind::lamb) return weight / direction;
  return is_weight ? nn::Optimizer::kTrust * weight / (direction + decay * weight + rule.epsilon) : 1;
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

void LayerWise::move(const Kernels& kernels, const nn::Optimizer& rule, std::span<const StepNumbers> numbers,
                     std::vector<TensorChunk> chunks, std::span<const float> gradients, const InParts& in_parts,
                     ModelState& state) {
  const std::size_t parameters = state.parameters.size();
  directions_.grow(parameters * sizeof(float));
  float *const directions = directions_.as<float>(), *const weights = state.parameters.data();
  float *const slot1 = state.optimizer.data(), *const slot2 = slot1 + parameters;  // slot2: of lamb only
  const bool is_lamb = rule.kind == nn::OptimizerKind::lamb;
  share(chunks, in_parts, [&](TensorChunk& chunk, int) {
    const std::int64_t at = chunk.first;
    const StepNumbers& s = numbers[chunk.tensor];
    if (is_lamb) {
      kernels.lamb_direction(s, gradients.data() + at, weights + at, slot1 + at, slot2 + at, directions + at,
                             chunk.count);
    } else {
      kernels.lars_direction(s, gradients.data() + at, directions + at, chunk.count);
    }
    chunk.squares = kernels.sum_of_squares(directions + at, chunk.count);
    chunk.weight_squares = kernels.sum_of_squares(weights + at, chunk.count);
  });
  const std::vector<Squares> squares = squares_of_tensors(numbers.size(), chunks);
  share(chunks, in_parts, [&](const TensorChunk& chunk, int) {
    const std::int64_t at = chunk.first;
    StepNumbers s = numbers[chunk.tensor];
    s.rate *= ratio(rule, chunk.is_weight, s.decay, squares[chunk.tensor]);
    if (is_lamb) return kernels.lamb_step(s, directions + at, weights + at, chunk.count);
    s.count = 1;  // directions are means already
    kernels.sgd(s, directions + at, weights + at, slot1 + at, chunk.count);
  });
}

}  // namespace dtrain::backend::cpu
