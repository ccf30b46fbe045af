// The pass over a graph that makes a program of it: see lowering.hpp. It walks forward in the order of the nodes, and
// in training backward against it, and adds the operations of each node, or of each group that fusion.hpp joins.
//
// The order of additions is the order in which operations run, and thus part of what the bits of a step depend on. So
// is the order in which the parts of a gradient are added up.
//
//   forward.cpp, backward.cpp   the walks, what each kind of layer adds, and layers without parameters
//   norm_groups.cpp             batch norms with what is fused to them
//   ../products/lower_*.cpp     convolutions and dense layers
//   ../layers/lower_*.cpp       the layers of transformers that have parameters
//   ../detection/lower_*.cpp    the layers of detectors
//   unwritten.cpp               what no operation writes
//
// Units: shapes are those of one sample; places in the flat buffers are counted in floats.
// Threads: one, while nothing runs. One object makes one program.
// Failure: a layer that the backend does not know is an error of the compiler, for the visits name every kind.
#pragma once

#include <concepts>
#include <memory>
#include <vector>

#include "../../fusion.hpp"
#include "../../node_access.hpp"
#include "../detection/region_ops.hpp"
#include "../detection/region_rows.hpp"
#include "../norm.hpp"
#include "lowering.hpp"

namespace dtrain::backend::cpu {

template <typename Kind, typename... Kinds>
concept OneOf = (std::same_as<Kind, Kinds> || ...);

class Lowering {
 public:
  // All must outlive the pass.
  Lowering(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);
  Lowered evaluation() &&;
  Lowered training() &&;

 private:
  // ---- the graph, and which tensor holds what

  const nn::Node& node(int index) const { return graph_.nodes[at(index)]; }
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  int loss() const { return size() - 1; }  // the last node
  bool wants_gradient(int index) const { return fusion_.needs_gradient[at(index)]; }
  // Where the node's parameter `which` stands in the flat buffer.
  std::int64_t parameter(int index, std::size_t which) const;
  // Where a contribution's metrics begin.
  std::int64_t first_metric() const { return graph_.parameter_count + graph_.statistic_count; }

  TensorId value(int index) const { return values_[at(index)]; }
  std::vector<TensorId> values_of_inputs(int index) const;
  // The shape in memory: behind a Flatten that moves nothing it is the one before it. A copy, for the next new tensor
  // ends references to the others.
  nn::Shape shape_of(TensorId id) const { return lowered_.program.tensor(id).shape; }
  // The kernels of the tensor's type, which is not the program's for logits and regions.
  const TensorKernels& kernels_of(TensorId id) const;

  // The tensor for the node's value.
  TensorId new_value(int index, const nn::Shape& shape);
  // A tensor of the program's type.
  TensorId new_tensor(const nn::Shape& shape) { return lowered_.program.add_tensor(shape, options_.dtype); }
  TensorId new_tensor_like(TensorId id) { return new_tensor(shape_of(id)); }
  // The node's value is that of its input: it takes no operation.
  void take_value_of_input(int index) { values_[at(index)] = value(node(index).inputs[0]); }

  // `part` says what of the node the operation computes: ".forward".
  void add(std::unique_ptr<Op> op, int of_node, const char* part);

  // ---- forward

  void forward();
  void forward_node(int index);
  void end_segment(int index);
  bool flatten_is_nothing(int index) const;
  void end_with_logits();
  void end_with_results(const nn::DetectionLoss& layer);
  void end_with_results(const nn::RegionLoss& layer);

  // ---- backward

  void backward();
  // Adds what computes the gradients by the node's inputs and parameters.
  void backward_node(int index);
  // The loss, and the gradients by what it reads.
  void begin_backward(const nn::SoftmaxLoss& layer);
  void begin_backward(const nn::DetectionLoss& layer);
  void begin_backward(const nn::RegionLoss& layer);

  // A part of the gradient by the value of node `to`.
  void pass_on(int to, TensorId gradient) { gradients_[at(to)].push_back(gradient); }
  // The parts of a value's gradient, added up until at most `parts` are left.
  std::vector<TensorId> gradient_parts(int index, std::size_t parts);
  TensorId gradient_of(int index) { return gradient_parts(index, 1)[0]; }
  // Takes back the part that came last; kNoTensor: there is none.
  TensorId take_gradient_part(int index);
  std::vector<Part> unwritten() const;

  // ---- kinds of layers; `index` is the layer's node, dy the gradient by its value

  void forward_norm_statistics(int norm);
  void forward_norm(int norm, int output);
  void backward_norm(int norm, int output);
  NormGradientTensors norm_gradient_tensors(int norm, int output);
  bool passes_residual(const NormGroup& group) const;
  TensorId value_again(int index);

  void backward_concat(int index, TensorId dy);
  void backward_multiply(int index, TensorId dy);

  void forward_product(int index);
  void backward_product(int index, TensorId dy);
  std::unique_ptr<Op> forward_op(int index, TensorId source, TensorId result) const;
  std::unique_ptr<Op> source_gradient(int index, TensorId dy, TensorId dx) const;
  std::unique_ptr<Op> weights_gradient(int index, TensorId source, TensorId dy) const;
  void forward_transposed(int index);
  void backward_transposed(int index, TensorId dy);

  void forward_layer_norm(int index, const nn::LayerNorm& layer);
  void backward_layer_norm(int index, const nn::LayerNorm& layer, TensorId dy);
  void backward_layer_scale(int index, TensorId dy);
  void backward_class_token(int index, TensorId dy);
  void backward_position(int index, TensorId dy);

  void backward_pyramid(int index, TensorId dy);
  nn::Levels levels_of(int pyramid) const;
  HeadTensors head_tensors(TensorId classes, TensorId boxes) const;
  RegionTensors region_tensors(const std::vector<TensorId>& inputs) const;
  RegionRows rows_of_regions(int index) const;  // of the value of node `index`

  const nn::Graph& graph_;
  Layers& layers_;
  const Kernels& all_kernels_;
  const TensorKernels& kernels_;  // of the program's type
  const CompileOptions& options_;
  const Fusion fusion_;
  const bool has_batch_norm_;
  bool training_ = true;
  std::vector<TensorId> values_;                  // by node; kNoTensor: inside a group, or not yet there
  std::vector<TensorId> moments_;                 // by node: those of a layer norm in training
  std::vector<std::vector<TensorId>> gradients_;  // by node: parts whose sum is the gradient by its value
  Lowered lowered_;
};

}  // namespace dtrain::backend::cpu
