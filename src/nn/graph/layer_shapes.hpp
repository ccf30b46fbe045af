// What a layer makes of its inputs: the shape of its output and the tensors that it needs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// Bounds that no real network comes near, so that sizes never overflow: of a layer's own numbers, of the values that
// one sample has in one place, and of one tensor.
constexpr int kLargestExtent = 1 << 24;
constexpr int kLargestMask = 256;  // points across and down
constexpr std::int64_t kLargestActivation = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kLargestTensor = std::int64_t{1} << 40;

// Throws UsageError naming the node when the layer's numbers make no sense or do not fit its inputs.
Shape output_shape(const std::string& node, const Layer& layer, std::span<const Shape> inputs);

struct TensorPlan {
  const char* suffix;  // MXNet's, after the node's name; none where the layer is nothing but a tensor
  std::vector<std::int64_t> shape;
  TensorRole role;
};
// In the order of Node::parameters, then of Node::statistics.
std::vector<TensorPlan> layer_tensors(const Layer& layer, const Shape& input);

inline bool is_statistic(TensorRole role) {
  return role == TensorRole::running_mean || role == TensorRole::running_variance;
}

}  // namespace dtrain::nn
