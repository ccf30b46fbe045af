// The forward walk, which ends with the results in evaluation; and what is asked of the pass everywhere.
#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/overloaded.hpp>

#include "../detection/detection_ops.hpp"
#include "../layers.hpp"
#include "../layers/token_layers.hpp"
#include "graph_lowering.hpp"

namespace dtrain::backend::cpu {

Lowered lower_evaluation(const nn::Graph& graph, Layers& layers, const Kernels& kernels,
                         const CompileOptions& options) {
  return Lowering(graph, layers, kernels, options).evaluation();
}

Lowering::Lowering(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options)
    : graph_(graph),
      layers_(layers),
      all_kernels_(kernels),
      kernels_(kernels_for(kernels, options.dtype)),
      options_(options),
      fusion_(fuse(graph)),
      has_batch_norm_(std::ranges::any_of(graph.nodes, [](const nn::Node& n) { return as<nn::BatchNorm>(n); })),
      values_(graph.nodes.size(), kNoTensor),
      moments_(graph.nodes.size(), kNoTensor),
      gradients_(graph.nodes.size()) {}

Lowered Lowering::evaluation() && {
  training_ = false;
  forward();
  std::visit(Overloaded{
                 [&](const OneOf<nn::DetectionLoss, nn::RegionLoss> auto& layer) { end_with_results(layer); },
                 [&](const auto&) { end_with_logits(); },
             },
             node(loss()).layer);
  return std::move(lowered_);
}

void Lowering::forward() {
  for (int index = 0; index < loss(); ++index) {
    if (as<nn::BatchNorm>(node(index)) && training_ && node(index).learns) forward_norm_statistics(index);
    const int norm = fusion_.norm_of[at(index)];
    if (norm >= 0) {
      forward_norm(norm, index);
    } else if (!fusion_.inside[at(index)]) {
      if (training_) end_segment(index);
      forward_node(index);
    }
  }
}

void Lowering::forward_node(int index) {
  const nn::Node& n = node(index);
  const auto x = [&](std::size_t which = 0) { return value(n.inputs[which]); };
  const auto y = [&] { return new_value(index, n.output); };
  const auto y_like_x = [&] { return new_value(index, shape_of(x())); };
  const auto emit = [&](std::unique_ptr<Op> op) { add(std::move(op), index, ".forward"); };
  std::visit(
      Overloaded{
          [&](const nn::Input&) { add(make_load_images(kernels_, y()), index, ".load"); },
          [&](const OneOf<nn::Convolution, nn::Dense> auto&) { forward_product(index); },
          [&](const nn::TransposedConvolution&) { forward_transposed(index); },
          [&](const nn::Activation& l) { emit(make_activation(l.kind, kernels_, x(), y_like_x())); },
          [&](const nn::Pooling& l) { emit(make_pooling(l, shape_of(x()), n.output, kernels_, x(), y())); },
          [&](const nn::Flatten&) {
            if (flatten_is_nothing(index)) return take_value_of_input(index);
            emit(make_flatten(shape_of(x()), kernels_, x(), y()));
          },
          [&](const nn::Add&) { emit(make_add(kernels_, x(0), x(1), y_like_x())); },
          [&](const nn::Concat&) { emit(make_concat(values_of_inputs(index), y())); },
          [&](const nn::Multiply&) { emit(make_multiply(n.output, kernels_, x(0), x(1), y())); },
          [&](const nn::Scale& l) { emit(make_scale(l, kernels_of(x()), x(), y_like_x())); },
          [&](const nn::Dropout& l) {
            if (!training_) return take_value_of_input(index);
            emit(make_dropout(l, index, shape_of(x()), kernels_, x(), y_like_x()));
          },

          [&](const nn::LayerNorm& l) { forward_layer_norm(index, l); },
          [&](const nn::LocalResponseNorm& l) {
            emit(make_local_response_norm(l, shape_of(x()).c, kernels_, x(), y_like_x()));
          },
          [&](const nn::LayerScale&) {
            emit(make_layer_scale(shape_of(x()), parameter(index, 0), kernels_, x(), y_like_x()));
          },
          [&](const nn::ClassToken&) { emit(make_class_token(parameter(index, 0), kernels_, x(), y())); },
          [&](const nn::Position&) { emit(make_position(parameter(index, 0), kernels_, x(), y_like_x())); },
          [&](const nn::FirstToken&) { emit(make_first_token(x(), y())); },
          [&](const nn::Attention& l) { emit(make_attention(l, shape_of(x()), kernels_, x(), y())); },

          [&](const nn::Upsample&) { emit(make_upsample(x(), y())); },
          [&](const nn::Pyramid&) { emit(make_pyramid(levels_of(index), values_of_inputs(index), y())); },
          [&](const nn::KeepLevels& l) { emit(make_keep_levels(l.levels, x(), y())); },
          [&](const nn::Proposals& l) { emit(make_proposals(l, index, training_, head_tensors(x(0), x(1)), y())); },
          [&](const nn::RegionAlign& l) { emit(make_region_align(l, kernels_, x(0), x(1), y())); },
          [&](const nn::KeepRegions& l) { emit(make_keep_regions(l, n.output, x(), y())); },
          [&](const nn::FoundRegions& l) {
            emit(make_found_regions(l, training_, x(0), head_tensors(x(1), x(2)), y()));
          },

          [](const OneOf<nn::BatchNorm, nn::SoftmaxLoss, nn::DetectionLoss, nn::RegionLoss> auto&) {
            DTRAIN_CHECK(false, "a norm outside of its group, or a loss that is not the last node");
          },
      },
      n.layer);
}

// Batch norms end segments anyway. Without them all of a pass would be one, whose chunks are as small as its largest
// images want: so it ends where the number of pixels changes.
void Lowering::end_segment(int index) {
  const nn::Node& n = node(index);
  if (has_batch_norm_ || n.inputs.empty()) return;
  const nn::Shape &in = node(n.inputs[0]).output, &out = n.output;
  if (std::int64_t{in.h} * in.w != std::int64_t{out.h} * out.w) add(make_boundary(), index, ".boundary");
}

// Where the layers behind it take any order, or one pixel has only one.
bool Lowering::flatten_is_nothing(int index) const {
  const nn::Shape in = shape_of(value(node(index).inputs[0]));
  return fusion_.flatten_is_free[at(index)] || std::int64_t{in.h} * in.w == 1;
}

void Lowering::end_with_logits() {
  const TensorId logits = value(node(loss()).inputs[0]);
  add(make_store_logits(kernels_of(logits), logits), loss(), ".logits");
}

std::int64_t Lowering::parameter(int index, std::size_t which) const {
  return graph_.parameters[at(node(index).parameters[which])].offset;
}

std::vector<TensorId> Lowering::values_of_inputs(int index) const {
  std::vector<TensorId> values;
  for (const int input : node(index).inputs) values.push_back(value(input));
  return values;
}

const TensorKernels& Lowering::kernels_of(TensorId id) const {
  return kernels_for(all_kernels_, lowered_.program.tensor(id).dtype);
}

TensorId Lowering::new_value(int index, const nn::Shape& shape) {
  const DType type = fusion_.stays_float[at(index)] ? DType::float32 : options_.dtype;
  return values_[at(index)] = lowered_.program.add_tensor(shape, type);
}

void Lowering::add(std::unique_ptr<Op> op, int of_node, const char* part) {
  op->name = node(of_node).name + part;
  lowered_.program.add(std::move(op));
}

}  // namespace dtrain::backend::cpu
