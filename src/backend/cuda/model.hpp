// A graph with what the memory of its executable looks like beside the flat buffers: the copies of weights that
// convolutions read, and the coefficients of batch norms.
#pragma once

#include <vector>

#include <dtrain/backend/backend.hpp>

#include "first_layer.hpp"
#include "program.hpp"

namespace dtrain::backend::cuda {

struct Model {
  Model(nn::Graph of, DType type, int counted_top_k);

  const nn::Graph graph;
  const DType dtype;  // of values and of the copies of weights
  const int top_k;    // at most the number of classes
  const FirstLayer first_layer;
  std::vector<PackedWeight> weights;  // of convolutions, transposed ones and dense layers, in the order of the nodes
  std::int64_t copied = 0;            // elements of the copies, gaps included
  std::vector<int> weight_of;         // by node: index into `weights`, or -1
  std::vector<std::int64_t> norm_of;  // by node: first of a batch norm's coefficients
  std::int64_t coefficients = 0;      // floats of all of them
  std::int64_t tickets = 1;           // for any FoldedSums and any norm over a node's values
  std::size_t value_bytes() const { return dtype == DType::float32 ? 4 : 2; }

  const nn::Node& node(int index) const { return graph.nodes[static_cast<std::size_t>(index)]; }
  bool has_weight(int node) const { return weight_of[static_cast<std::size_t>(node)] >= 0; }
  bool has_bias(int index) const { return has_weight(index) && node(index).parameters.size() > 1; }
  // First element of a node's tensor in the flat buffers.
  std::int64_t parameter(int node, int which) const;
  std::int64_t statistic(int node, int which) const;

  // The convolution that a node (a convolution, or a dense layer over flattened input) is, for n samples; on blocks,
  // where it is computed on these. Of a transposed convolution the one whose output is this one's input: it goes
  // forward by the data gradient of that one, and backward by its other two directions.
  ConvolutionShape convolution_shape(int node, int n) const;
  // The same as work, on memory that is still to be named.
  Convolution convolution(const Binding& binding, int node, Direction direction) const;
  template <typename T>
  T* weight_in(void* copies, int node) const {
    return static_cast<T*>(copies) + weights[static_cast<std::size_t>(weight_of[static_cast<std::size_t>(node)])].first;
  }
  const PixelBlocks* blocks_of(int node) const {
    return node == first_layer.convolution && first_layer.blocks ? &*first_layer.blocks : nullptr;
  }
  NormCoefficients norm_coefficients(const Binding& binding, int norm) const;
  NormParameters norm_parameters(const Binding& binding, int norm) const;
  // What first_layer.activation is computed by.
  template <typename T>
  Whitening<T> whitening(const Binding& binding, const T* image) const {
    const int index = first_layer.convolution;
    const float* const bias = has_bias(index) ? binding.parameters + parameter(index, 1) : nullptr;
    return {image, graph.input().h,     graph.input().w, binding.parameters + parameter(index, 0),
            bias,  node(index).output.c};
  }

 private:
  ConvolutionShape plain_shape(int node, int n) const;
};

}  // namespace dtrain::backend::cuda
