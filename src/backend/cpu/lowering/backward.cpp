// The backward walk, which begins with the loss: what training adds behind the forward walk.
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/overloaded.hpp>

#include "../detection/detection_ops.hpp"
#include "../layers.hpp"
#include "../layers/token_layers.hpp"
#include "graph_lowering.hpp"
#include "unwritten.hpp"

namespace dtrain::backend::cpu {

Lowered lower_training(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options) {
  return Lowering(graph, layers, kernels, options).training();
}

Lowered Lowering::training() && {
  forward();
  backward();
  lowered_.unwritten = unwritten();
  return std::move(lowered_);
}

void Lowering::backward() {
  std::visit(Overloaded{
                 [&](const OneOf<nn::DetectionLoss, nn::RegionLoss> auto& layer) { begin_backward(layer); },
                 [&](const auto&) { begin_backward(nn::loss_of(graph_)); },
             },
             node(loss()).layer);
  for (int index = loss() - 1; index > 0; --index) {
    if (gradients_[at(index)].empty()) continue;
    const int norm = fusion_.norm_of[at(index)];
    if (norm >= 0) {
      backward_norm(norm, index);
    } else {
      backward_node(index);
      end_segment(index);
    }
  }
}

void Lowering::begin_backward(const nn::SoftmaxLoss& layer) {
  const int source = node(loss()).inputs[0];
  const TensorId logits = value(source);
  const TensorId by_logits = new_tensor_like(logits);
  add(make_softmax_loss(layer, options_.top_k, first_metric(), kernels_of(logits), kernels_, logits, by_logits), loss(),
      "");
  pass_on(source, by_logits);
}

void Lowering::backward_node(int index) {
  const nn::Node& n = node(index);
  if (n.inputs.empty() || !wants_gradient(index)) return;
  const TensorId dy = gradient_of(index);
  const int source = n.inputs[0];
  const TensorId x = value(source);
  // Adds make(dx), which computes the gradient by the first input, unless only another input wants one.
  const auto emit = [&](auto make) {
    if (!wants_gradient(source)) return;
    const TensorId dx = new_tensor_like(x);
    add(make(dx), index, ".gradient");
    pass_on(source, dx);
  };
  std::visit(
      Overloaded{
          [&](const OneOf<nn::Convolution, nn::Dense> auto&) { backward_product(index, dy); },
          [&](const nn::TransposedConvolution&) { backward_transposed(index, dy); },
          [&](const nn::Activation& l) {
            const TensorId by = slope_is_by_input(l) ? x : value(index);
            emit([&](TensorId dx) { return make_activation_gradient(l.kind, kernels_, dy, by, dx); });
          },
          [&](const nn::Pooling& l) {
            emit([&](TensorId dx) { return make_pooling_gradient(l, shape_of(x), n.output, kernels_, x, dy, dx); });
          },
          [&](const nn::Flatten&) {
            if (flatten_is_nothing(index)) return pass_on(source, dy);
            emit([&](TensorId dx) { return make_flatten_gradient(shape_of(x), kernels_, dy, dx); });
          },
          [&](const nn::Add&) {
            for (const int input : n.inputs) {
              if (wants_gradient(input)) pass_on(input, dy);
            }
          },
          [&](const nn::Concat&) { backward_concat(index, dy); },
          [&](const nn::Multiply&) { backward_multiply(index, dy); },
          [&](const nn::Scale& l) { emit([&](TensorId dx) { return make_scale(l, kernels_, dy, dx); }); },
          [&](const nn::Dropout& l) {
            emit([&](TensorId dx) { return make_dropout(l, index, shape_of(x), kernels_, dy, dx); });
          },

          [&](const nn::LayerNorm& l) { backward_layer_norm(index, l, dy); },
          [&](const nn::LocalResponseNorm& l) {
            emit([&](TensorId dx) { return make_local_response_norm_gradient(l, n.output.c, kernels_, x, dy, dx); });
          },
          [&](const nn::LayerScale&) { backward_layer_scale(index, dy); },
          [&](const nn::ClassToken&) { backward_class_token(index, dy); },
          [&](const nn::Position&) { backward_position(index, dy); },
          [&](const nn::FirstToken&) { emit([&](TensorId dx) { return make_first_token_gradient(dy, dx); }); },
          [&](const nn::Attention& l) {
            emit([&](TensorId dx) { return make_attention_gradient(l, shape_of(x), kernels_, x, dy, dx); });
          },

          [&](const nn::Upsample&) { emit([&](TensorId dx) { return make_upsample_gradient(kernels_, dy, dx); }); },
          [&](const nn::Pyramid&) { backward_pyramid(index, dy); },
          [&](const nn::KeepLevels& l) { emit([&](TensorId dx) { return make_keep_levels(l.levels, dy, dx); }); },
          [&](const nn::RegionAlign& l) {
            const TensorId regions = value(n.inputs[1]);
            emit([&](TensorId dx) { return make_region_align_gradient(l, kernels_, regions, dy, dx); });
          },
          [&](const nn::KeepRegions& l) { emit([&](TensorId dx) { return make_keep_regions(l, n.output, dy, dx); }); },

          [](const OneOf<nn::Input, nn::BatchNorm, nn::SoftmaxLoss, nn::DetectionLoss, nn::Proposals, nn::FoundRegions,
                         nn::RegionLoss> auto&) {
            DTRAIN_CHECK(false,
                         "a gradient by the value of a layer that gives none, or of a norm outside of its group");
          },
      },
      n.layer);
}

void Lowering::backward_concat(int index, TensorId dy) {
  int first_channel = 0;
  for (const int input : node(index).inputs) {
    const nn::Shape& shape = node(input).output;
    if (wants_gradient(input)) {
      const TensorId dx = new_tensor(shape);
      add(make_concat_gradient(dy, first_channel, dx), index, ".gradient");
      pass_on(input, dx);
    }
    first_channel += shape.c;
  }
}

void Lowering::backward_multiply(int index, TensorId dy) {
  const nn::Shape& shape = node(index).output;
  const int source = node(index).inputs[0], factors = node(index).inputs[1];
  if (wants_gradient(factors)) {
    const TensorId by_factors = new_tensor_like(value(factors));
    add(make_factor_gradient(shape, kernels_, value(source), dy, by_factors), index, ".factor_gradient");
    pass_on(factors, by_factors);
  }
  if (wants_gradient(source)) {
    const TensorId dx = new_tensor_like(value(source));
    add(make_multiply(shape, kernels_, dy, value(factors), dx), index, ".gradient");
    pass_on(source, dx);
  }
}

std::vector<TensorId> Lowering::gradient_parts(int index, std::size_t parts) {
  std::vector<TensorId>& all = gradients_[at(index)];
  while (all.size() > parts) {
    const TensorId sum = new_tensor_like(all[0]);
    add(make_add(kernels_, all[0], all[1], sum), index, ".gradient_sum");
    all.erase(all.begin());
    all[0] = sum;
  }
  return all;
}

TensorId Lowering::take_gradient_part(int index) {
  std::vector<TensorId>& parts = gradients_[at(index)];
  if (parts.empty()) return kNoTensor;
  const TensorId last = parts.back();
  parts.pop_back();
  return last;
}

std::vector<Part> Lowering::unwritten() const {
  std::vector<bool> is_reached;
  for (const std::vector<TensorId>& parts : gradients_) is_reached.push_back(!parts.empty());
  return unwritten_parts(graph_, fusion_, is_reached);
}

}  // namespace dtrain::backend::cpu
