// Which of a graph's parameters an optimizer treats differently.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/optimizer_rule.hpp>

namespace dtrain::nn {

bool has_weight(const Node& node);  // a convolution or a dense layer

// The nodes with parameters whose outputs are as many as there are classes, or a multiple of it: what a network of
// other classes has anew.
std::vector<const Node*> heads_of(const Graph& graph);

// head: the weight of the last layer that has one, which gives the logits, and of a detector those of heads_of();
// matrix: the other weights of convolutions and dense layers; weight: those of layers whose weight is no matrix for
// muon, such as a transposed convolution; vector: biases, gammas and betas.
enum class ParameterGroup { matrix, head, weight, vector };
std::vector<ParameterGroup> parameter_groups(const Graph& graph);  // per tensor of Graph::parameters

float lr_factor(const Optimizer& rule, ParameterGroup group);
// Weight decay of a tensor under this rule: 0 for biases and betas, and with lamb for gammas too.
float decay_of(const Optimizer& rule, const TensorView& tensor);

// Per tensor: 1 in the last block of layers, and times `decay` for each block further towards the images (as timm's
// --layer-decay). A block is one residual block, "layer1.0" or "features.2.1", with all that has its name, or one
// module of parallel branches, "Mixed_5b" or "inception3a"; of a detector all heads together, and before them its
// feature pyramid; elsewhere one convolution or dense layer with what follows it.
std::vector<float> layer_shares(const Graph& graph, float decay);

// [rows, columns] of the flat parameter buffer from element `first` on, row by row.
struct WeightMatrix {
  std::int64_t first = 0;
  std::int32_t rows = 0, columns = 0;
  bool scale_free = false;  // only batch norms that learn see its scale: a positive factor changes nothing in training
  std::int64_t size() const { return std::int64_t{rows} * columns; }
};

// The tensors of group matrix that are not frozen: [out / groups, in / groups * kernel_h * kernel_w] for each group of
// a convolution, since groups share nothing; [out, in] of a dense layer. In the order of the buffer.
std::vector<WeightMatrix> weight_matrices(const Graph& graph);

}  // namespace dtrain::nn
