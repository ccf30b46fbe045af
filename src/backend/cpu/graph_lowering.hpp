// The pass over a graph that makes a program of it: lowering.hpp.
#pragma once

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "../fusion.hpp"
#include "detection/region_ops.hpp"
#include "layers.hpp"
#include "lowering.hpp"
#include "norm.hpp"
#include "products/dense_gradient.hpp"
#include "products/depthwise.hpp"
#include "products/matrix_gradient.hpp"
#include "products/product_ops.hpp"
#include "products/tile_gradient_op.hpp"
#include "products/winograd.hpp"

namespace dtrain::backend::cpu {

template <typename LayerType>
const LayerType* as(const nn::Node& node) {
  return std::get_if<LayerType>(&node.layer);
}

inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

inline const TensorKernels& kernels_for(const Kernels& kernels, DType dtype) {
  return dtype == DType::bfloat16 ? kernels.bfloat16 : kernels.float32;
}

class Lowering {
 public:
  Lowering(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options)
      : graph_(graph),
        layers_(layers),
        kernels_(kernels_for(kernels, options.dtype)),
        all_kernels_(kernels),
        options_(options),
        fusion_(fuse(graph)),
        has_batch_norm_(std::ranges::any_of(graph.nodes, [](const nn::Node& n) { return as<nn::BatchNorm>(n); })),
        values_(graph.nodes.size(), kNoTensor),
        moments_(graph.nodes.size(), kNoTensor),
        gradients_(graph.nodes.size()) {}

  Lowered evaluation() {
    training_ = false;
    forward();
    if (const auto* detection = as<nn::DetectionLoss>(node(size() - 1))) return end_with_results(*detection), finish();
    if (const auto* regions = as<nn::RegionLoss>(node(size() - 1))) return end_with_results(*regions), finish();
    const TensorId logits = value(node(size() - 1).inputs[0]);
    add(make_store_logits(kernels_for(all_kernels_, program().tensor(logits).dtype), logits), size() - 1, ".logits");
    return finish();
  }

  Lowered training() {
    forward();
    backward();
    return finish();
  }

 private:
  const nn::Node& node(int index) const { return graph_.nodes[at(index)]; }
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  Program& program() { return lowered_.program; }
  TensorId value(int index) const { return values_[at(index)]; }
  const nn::Shape& shape_of(TensorId id) { return program().tensor(id).shape; }
  bool wants_gradient(int index) const { return fusion_.needs_gradient[at(index)]; }

  TensorId new_value(int index, const nn::Shape& shape) {
    const bool wide = fusion_.stays_float[at(index)];
    return values_[at(index)] = program().add_tensor(shape, wide ? DType::float32 : options_.dtype);
  }
  TensorId new_tensor_like(TensorId id) { return program().add_tensor(shape_of(id), options_.dtype); }

  void add(std::unique_ptr<Op> op, int of, const char* part) {
    op->name = node(of).name + part;
    program().add(std::move(op));
  }

  Lowered finish() {
    if (training_) find_unwritten();
    return std::move(lowered_);
  }

  // ---- forward

  void forward() {
    for (int index = 0; index + 1 < size(); ++index) {
      if (as<nn::BatchNorm>(node(index)) && training_ && node(index).learns) {
        add(make_norm_statistics(*layers_.norms[at(index)], kernels_, value(node(index).inputs[0])), index,
            ".statistics");
      }
      const int norm = fusion_.norm_of[at(index)];
      if (norm >= 0) {
        forward_norm(norm, index);
      } else if (!fusion_.inside[at(index)]) {
        if (training_) end_segment(index);
        forward_node(index);
      }
    }
  }

  // Batch norms end segments anyway. Without them all of a pass would be one, whose chunks are as small as its largest
  // images want: so it ends where the number of pixels changes.
  void end_segment(int index) {
    const nn::Node& n = node(index);
    if (has_batch_norm_ || n.inputs.empty()) return;
    const nn::Shape &in = node(n.inputs[0]).output, &out = n.output;
    if (std::int64_t{in.h} * in.w != std::int64_t{out.h} * out.w) add(make_boundary(), index, ".boundary");
  }

  void forward_norm(int norm, int output) {
    const NormGroup& group = fusion_.norms[at(norm)];
    const TensorId input = value(node(norm).inputs[0]);
    const TensorId residual = group.residual >= 0 ? value(group.residual) : kNoTensor;
    add(make_norm_apply(*layers_.norms[at(norm)], kernels_, input, residual, group.relu,
                        new_value(output, shape_of(input))),
        norm, ".forward");
  }

  void forward_node(int index) {
    const nn::Node& n = node(index);
    const TensorId x = n.inputs.empty() ? kNoTensor : value(n.inputs[0]);
    if (as<nn::Input>(n)) {
      add(make_load_images(kernels_, new_value(index, n.output)), index, ".load");
    } else if (as<nn::TransposedConvolution>(n)) {
      forward_transposed(index, x);
    } else if (layers_.products[at(index)]) {
      ProductLayer& layer = *layers_.products[at(index)];
      const TensorId result = new_value(index, n.output);
      add(layer.shape().by_tiles ? make_winograd_forward(layer, x, result, rows_of_regions(index))
                                 : make_product_forward(layer, x, result),
          index, ".forward");
    } else if (const auto* activation = as<nn::Activation>(n)) {
      add(make_activation(activation->kind, kernels_, x, new_value(index, shape_of(x))), index, ".forward");
    } else if (const auto* pooling = as<nn::Pooling>(n)) {
      add(make_pooling(*pooling, shape_of(x), n.output, kernels_, x, new_value(index, n.output)), index, ".forward");
    } else if (as<nn::Add>(n)) {
      add(make_add(kernels_, x, value(n.inputs[1]), new_value(index, shape_of(x))), index, ".forward");
    } else if (as<nn::Concat>(n)) {
      std::vector<TensorId> inputs;
      for (const int input : n.inputs) inputs.push_back(value(input));
      add(make_concat(inputs, new_value(index, n.output)), index, ".forward");
    } else if (as<nn::Multiply>(n)) {
      add(make_multiply(n.output, kernels_, x, value(n.inputs[1]), new_value(index, n.output)), index, ".forward");
    } else if (const auto* scale = as<nn::Scale>(n)) {
      const TensorKernels& kernels = kernels_for(all_kernels_, program().tensor(x).dtype);
      add(make_scale(*scale, kernels, x, new_value(index, shape_of(x))), index, ".forward");
    } else if (const auto* dropout = as<nn::Dropout>(n)) {
      if (!training_)
        values_[at(index)] = x;
      else
        add(make_dropout(*dropout, index, shape_of(x), kernels_, x, new_value(index, shape_of(x))), index, ".forward");
    } else if (as<nn::Flatten>(n)) {
      if (flatten_is_nothing(index))
        values_[at(index)] = x;
      else
        add(make_flatten(shape_of(x), kernels_, x, new_value(index, n.output)), index, ".forward");
    } else if (!forward_detection_layer(index, x) && !forward_region_layer(index)) {
      forward_token_layer(index, x);
    }
  }

  // products/lower_transposed.cpp
  void forward_transposed(int index, TensorId x);
  void backward_transposed(int index, TensorId gradient);

  // layers/lower_tokens.cpp
  std::int64_t parameter(int index, std::size_t which) const {
    return graph_.parameters[at(node(index).parameters[which])].offset;
  }
  void forward_token_layer(int index, TensorId x);
  // False: the layer is none of these.
  bool backward_token_layer(int index, TensorId gradient);

  // detection/lower_detection.cpp; false: the layer is none of these.
  bool forward_detection_layer(int index, TensorId x);
  bool backward_detection_layer(int index, TensorId gradient);
  void backward_pyramid(int index, TensorId gradient);
  nn::Levels levels_of(int pyramid) const;
  void end_with_results(const nn::DetectionLoss& layer);
  void begin_backward(const nn::DetectionLoss& layer);

  // detection/lower_regions.cpp
  HeadTensors head_tensors(TensorId classes, TensorId boxes);
  RegionTensors region_tensors(const std::vector<TensorId>& inputs);
  std::vector<TensorId> values_of_inputs(int index) const;
  bool forward_region_layer(int index);
  RegionRows rows_of_regions(int index) const;  // of the value of node `index`
  bool backward_region_layer(int index, TensorId gradient);
  void end_with_results(const nn::RegionLoss& layer);
  void begin_backward(const nn::RegionLoss& layer);

  bool flatten_is_nothing(int index) {
    const nn::Shape& s = shape_of(value(node(index).inputs[0]));
    return fusion_.flatten_is_free[at(index)] || std::int64_t{s.h} * s.w == 1;
  }

  // ---- backward

  void begin_backward(const nn::SoftmaxLoss& loss) {
    const int logits = node(size() - 1).inputs[0];
    const TensorId gradient = new_tensor_like(value(logits));
    add(make_softmax_loss(loss, options_.top_k, graph_.parameter_count + graph_.statistic_count,
                          kernels_for(all_kernels_, program().tensor(value(logits)).dtype), kernels_, value(logits),
                          gradient),
        size() - 1, "");
    pass_on(logits, gradient);
  }

  void backward() {
    if (const auto* detection = as<nn::DetectionLoss>(node(size() - 1))) {
      begin_backward(*detection);
    } else if (const auto* regions = as<nn::RegionLoss>(node(size() - 1))) {
      begin_backward(*regions);
    } else {
      begin_backward(nn::loss_of(graph_));
    }
    for (int index = size() - 2; index > 0; --index) {
      const int norm = fusion_.norm_of[at(index)];
      if (gradients_[at(index)].empty()) continue;
      if (norm >= 0) {
        backward_norm(norm, index);
      } else {
        backward_node(index);
        end_segment(index);
      }
    }
  }

  // The parts of a value's gradient, added up until at most `parts` are left.
  std::vector<TensorId> gradient_parts(int index, std::size_t parts) {
    std::vector<TensorId>& all = gradients_[at(index)];
    while (all.size() > parts) {
      const TensorId sum = new_tensor_like(all[0]);
      add(make_add(kernels_, all[0], all[1], sum), index, ".gradient_sum");
      all.erase(all.begin());
      all[0] = sum;
    }
    return all;
  }
  TensorId gradient_of(int index) { return gradient_parts(index, 1)[0]; }

  void pass_on(int to, TensorId gradient) { gradients_[at(to)].push_back(gradient); }

  void backward_norm(int norm, int output) {
    const NormGroup& group = fusion_.norms[at(norm)];
    const NormLayer& layer = *layers_.norms[at(norm)];
    const int source = node(norm).inputs[0];
    const std::vector<TensorId> parts = gradient_parts(output, 2);
    const bool pass_residual = group.residual >= 0 && wants_gradient(group.residual);

    NormGradientTensors t;
    t.gradient = parts[0];
    t.gradient2 = parts.size() > 1 ? parts[1] : kNoTensor;
    t.input = value(source);
    if (group.relu) t.mask = group.residual >= 0 ? Mask::from_output : Mask::from_input;
    if (t.mask == Mask::from_output) t.output = value(output);
    const bool keep_masked =
        t.gradient2 != kNoTensor || (t.mask != Mask::none && pass_residual) || t.mask == Mask::from_output;
    if (keep_masked) t.masked = new_tensor_like(t.gradient);
    if (layer.learns || keep_masked) add(make_norm_gradient_sums(layer, kernels_, t), norm, ".gradient_sums");

    if (pass_residual) pass_on(group.residual, keep_masked ? t.masked : t.gradient);
    if (!wants_gradient(source)) return;
    // A gradient that reaches the same value on another way is added here instead of in a pass of its own.
    TensorId addend = kNoTensor;
    auto& others = gradients_[at(source)];
    if (!others.empty()) {
      addend = others.back();
      others.pop_back();
    }
    const TensorId result = new_tensor_like(t.input);
    add(make_norm_gradient(layer, kernels_, t, addend, result), norm, ".gradient");
    pass_on(source, result);
  }

  // The value for the backward pass: where the forward pass did not keep it, it is computed again.
  TensorId value_again(int index) {
    const int norm = fusion_.norm_of[at(index)];
    if (norm < 0 || !fusion_.norms[at(norm)].computed_twice) return value(index);
    const TensorId input = value(node(norm).inputs[0]);
    const TensorId again = new_tensor_like(value(index));
    add(make_norm_apply(*layers_.norms[at(norm)], kernels_, input, kNoTensor, fusion_.norms[at(norm)].relu, again),
        norm, ".again");
    return again;
  }

  std::unique_ptr<Op> weights_gradient(int index, TensorId source, TensorId gradient) {
    ProductLayer& layer = *layers_.products[at(index)];
    if (layer.shape().by_tiles && sums_minimally(layer.shape())) {
      return make_winograd_backward_weights(layer, source, gradient, rows_of_regions(index));
    }
    if (has_matrix_gradient(layer.shape(), this_cpu())) return make_matrix_gradient(layer, source, gradient);
    if (has_dense_gradient(layer.shape(), this_cpu())) return make_dense_gradient(layer, source, gradient);
    if (has_tile_gradient(layer.shape(), this_cpu())) return make_tile_gradient(layer, source, gradient);
    if (has_own_weights_gradient(layer.shape())) {
      return make_depthwise_weights_gradient(layer, kernels_, source, gradient);
    }
    return make_product_backward_weights(layer, source, gradient);
  }

  void backward_product(int index, TensorId gradient) {
    ProductLayer& layer = *layers_.products[at(index)];
    const int source = node(index).inputs[0];
    if (wants_gradient(source)) {
      const TensorId result = program().add_tensor(shape_of(value(source)), options_.dtype);
      add(layer.shape().by_tiles ? make_winograd_backward_data(layer, gradient, result, rows_of_regions(index))
                                 : make_product_backward_data(layer, gradient, result),
          index, ".backward_data");
      pass_on(source, result);
    }
    if (!nn::is_held(node(index), 0)) {
      const TensorId x = value_again(source);
      add(weights_gradient(index, x, gradient), index, ".backward_weights");
    }
    if (layer.bias_offset() >= 0 && !nn::is_held(node(index), 1))
      add(make_bias_gradient({layer.bias_offset(), shape_of(gradient).c}, kernels_, gradient), index, ".backward_bias");
  }

  // lowering.cpp
  void backward_concat(int index, TensorId gradient);
  void backward_multiply(int index, TensorId gradient);

  void backward_layer_scale(int index, TensorId gradient);
  void backward_class_token(int index, TensorId gradient);
  void backward_position(int index, TensorId gradient);

  void backward_node(int index) {
    const nn::Node& n = node(index);
    if (n.inputs.empty() || !wants_gradient(index)) return;
    const TensorId gradient = gradient_of(index);
    if (as<nn::TransposedConvolution>(n)) return backward_transposed(index, gradient);
    if (layers_.products[at(index)]) return backward_product(index, gradient);
    if (as<nn::Add>(n)) {
      for (const int input : n.inputs) {
        if (wants_gradient(input)) pass_on(input, gradient);
      }
      return;
    }
    if (as<nn::Concat>(n)) return backward_concat(index, gradient);
    if (as<nn::Multiply>(n)) return backward_multiply(index, gradient);
    if (backward_token_layer(index, gradient) || backward_detection_layer(index, gradient)) return;
    if (backward_region_layer(index, gradient)) return;
    const int source = n.inputs[0];
    const TensorId x = value(source);
    if (as<nn::Flatten>(n) && flatten_is_nothing(index)) return pass_on(source, gradient);
    const TensorId result = new_tensor_like(x);
    if (const auto* activation = as<nn::Activation>(n)) {
      const TensorId by = slope_is_by_input(*activation) ? x : value(index);
      add(make_activation_gradient(activation->kind, kernels_, gradient, by, result), index, ".gradient");
    } else if (const auto* pooling = as<nn::Pooling>(n)) {
      add(make_pooling_gradient(*pooling, shape_of(x), n.output, kernels_, x, gradient, result), index, ".gradient");
    } else if (const auto* scale = as<nn::Scale>(n)) {
      add(make_scale(*scale, kernels_, gradient, result), index, ".gradient");
    } else if (const auto* dropout = as<nn::Dropout>(n)) {
      add(make_dropout(*dropout, index, shape_of(x), kernels_, gradient, result), index, ".gradient");
    } else {
      DTRAIN_CHECK(as<nn::Flatten>(n), "a layer whose gradient the cpu backend does not know");
      add(make_flatten_gradient(shape_of(x), kernels_, gradient, result), index, ".gradient");
    }
    pass_on(source, result);
  }

  void find_unwritten() {
    for (int index = 0; index < size(); ++index) {
      const int output = as<nn::BatchNorm>(node(index)) ? fusion_.norms[at(index)].output : index;
      const bool reached = !gradients_[at(output)].empty(), learns = node(index).learns;
      for (std::size_t which = 0; which < node(index).parameters.size(); ++which) {
        // A norm that learns writes both gradients, also that of a held gamma: the update passes over it.
        const bool writes = as<nn::BatchNorm>(node(index)) ? learns : !nn::is_held(node(index), which);
        if (reached && writes) continue;
        const nn::TensorView& view = graph_.parameters[at(node(index).parameters[which])];
        lowered_.unwritten.emplace_back(view.offset, view.size);
      }
      for (const int statistic : node(index).statistics) {
        const nn::TensorView& view = graph_.statistics[at(statistic)];
        if (!learns) lowered_.unwritten.emplace_back(graph_.parameter_count + view.offset, view.size);
      }
    }
  }

  const nn::Graph& graph_;
  Layers& layers_;
  const TensorKernels& kernels_;
  const Kernels& all_kernels_;
  const CompileOptions& options_;
  Fusion fusion_;
  const bool has_batch_norm_;
  bool training_ = true;
  std::vector<TensorId> values_;                  // by node
  std::vector<TensorId> moments_;                 // by node: of a layer norm in training
  std::vector<std::vector<TensorId>> gradients_;  // by node: parts whose sum is the gradient by its value
  Lowered lowered_;
};

}  // namespace dtrain::backend::cpu
