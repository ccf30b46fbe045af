#include "pass.hpp"

#include <algorithm>

#include <dtrain/base/overloaded.hpp>

#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// A channel's slice of the flat statistics as moments.
Moments running_moments(const nn::Graph& graph, const nn::Node& node, std::span<const float> statistics) {
  const auto values_of = [&](int which) {
    const nn::TensorView& view = graph.statistics[node.statistics[which]];
    const auto first = statistics.begin() + view.offset;
    return std::vector<double>(first, first + view.size);
  };
  return {values_of(0), values_of(1)};
}

}  // namespace

Pass::Pass(const PassInput& input) : input_(input) {
  for (const nn::Node& node : input.graph.nodes) values_.emplace_back(input.samples.n, node.output);
}

const Samples& Pass::input_of(int node, int which) const { return values_[input_.graph.nodes[node].inputs[which]]; }

std::vector<const Samples*> Pass::inputs_of(int node) const {
  std::vector<const Samples*> inputs;
  for (const int input : input_.graph.nodes[node].inputs) inputs.push_back(&values_[input]);
  return inputs;
}

const float* Pass::parameter(int node, int which) const {
  const std::vector<int>& parameters = input_.graph.nodes[node].parameters;
  if (which >= static_cast<int>(parameters.size())) return nullptr;
  return input_.parameters.data() + input_.graph.parameters[parameters[which]].offset;
}

DrawKey Pass::draw_key(int node) const { return {input_.key, node, input_.samples.sample_ids}; }

StepMetrics Pass::detection_metrics() const {
  const int last = static_cast<int>(values_.size()) - 1;
  const nn::Layer& layer = input_.graph.nodes.back().layer;
  if (const auto* regions = std::get_if<nn::RegionLoss>(&layer)) {
    return region_metrics(*regions, draw_key(last), inputs_of(last), input_.samples);
  }
  return reference::detection_metrics(std::get<nn::DetectionLoss>(layer), input_of(last, 0), input_of(last, 1),
                                      input_.samples);
}

void Pass::detect(std::span<float> results) const {
  const int last = static_cast<int>(values_.size()) - 1;
  const nn::Layer& layer = input_.graph.nodes.back().layer;
  if (const auto* regions = std::get_if<nn::RegionLoss>(&layer)) {
    found_objects(*regions, inputs_of(last), results);
  } else {
    reference::detect(std::get<nn::DetectionLoss>(layer), input_of(last, 0), input_of(last, 1), input_.samples,
                      results);
  }
}

const Samples& Pass::logits() const { return input_of(static_cast<int>(values_.size()) - 1); }

void Pass::forward() {
  for (int node = 0; node < static_cast<int>(values_.size()); ++node) forward_node(node);
}

void Pass::forward_node(int index) {
  const nn::Node& node = input_.graph.nodes[index];
  Samples& y = values_[index];
  const auto x = [&]() -> const Samples& { return input_of(index); };
  std::visit(
      Overloaded{
          [&](const nn::Input&) { std::copy_n(input_.samples.images, y.values.size(), y.values.begin()); },
          [&](const nn::Convolution& l) { convolve(l, x(), parameter(index, 0), parameter(index, 1), y); },
          [&](const nn::BatchNorm& l) {
            const bool of_batch = input_.training && node.learns;
            const Moments moments = of_batch ? moments_of(x()) : running_moments(input_.graph, node, input_.statistics);
            batch_norm(l, x(), moments, parameter(index, 0), parameter(index, 1), y);
          },
          [&](const nn::Activation& l) { activate(l, x(), y); },
          [&](const nn::Pooling& l) { pool(l, x(), y); },
          [&](const nn::Dense&) { dense(x(), parameter(index, 0), parameter(index, 1), y); },
          [&](const nn::Flatten&) { y.values = x().values; },
          [&](const nn::Add&) { add(x(), input_of(index, 1), y); },
          [&](const nn::Concat&) { concat(inputs_of(index), y); },
          [&](const nn::Multiply&) { multiply(x(), input_of(index, 1), y); },
          [&](const nn::Dropout& l) {
            if (input_.training) {
              drop(l, draw_key(index), x(), y);
            } else {
              y.values = x().values;
            }
          },
          [&](const nn::Scale& l) { scale(l, x(), y); },
          [&](const nn::LayerNorm& l) { layer_norm(l, x(), parameter(index, 0), parameter(index, 1), y); },
          [&](const nn::LocalResponseNorm& l) { local_response_norm(l, x(), y); },
          [&](const nn::LayerScale&) { layer_scale(x(), parameter(index, 0), y); },
          [&](const nn::ClassToken&) { class_token(x(), parameter(index, 0), y); },
          [&](const nn::Position&) { add_position(x(), parameter(index, 0), y); },
          [&](const nn::FirstToken&) { first_token(x(), y); },
          [&](const nn::Attention& l) { attend(l, x(), y); },
          [&](const nn::SoftmaxLoss&) { softmax(x(), y); },
          [&](const nn::Upsample&) { upsample(x(), y); },
          [&](const nn::Pyramid&) { pyramid(inputs_of(index), y); },
          [&](const nn::KeepLevels& l) { keep_levels(l, x(), y); },
          [&](const nn::TransposedConvolution& l) {
            transposed_convolve(l, x(), parameter(index, 0), parameter(index, 1), y);
          },
          [&](const nn::Proposals& l) {
            propose(l, input_.training ? std::optional(draw_key(index)) : std::nullopt, x(), input_of(index, 1),
                    input_.samples, y);
          },
          [&](const nn::RegionAlign& l) { align_regions(l, x(), input_of(index, 1), y); },
          [&](const nn::KeepRegions& l) { keep_regions(l, x(), y); },
          [&](const nn::FoundRegions& l) { find_regions(l, input_.training, inputs_of(index), input_.samples, y); },
          // A batch has one loss, and evaluation one result.
          [&](const nn::DetectionLoss&) {},
          [&](const nn::RegionLoss&) {},
      },
      node.layer);
}

void Pass::backward(std::span<float> gradients) {
  for (int node = static_cast<int>(values_.size()) - 1; node > 0; --node) backward_node(node, gradients);
  for (const nn::Node& node : input_.graph.nodes) {
    if (node.learns) continue;
    for (const int parameter : node.parameters) {
      const nn::TensorView& view = input_.graph.parameters[parameter];
      std::fill_n(gradients.begin() + view.offset, view.size, 0.0f);
    }
  }
}

void Pass::backward_node(int index, std::span<float> gradients) {
  if (gradients_.empty()) {
    for (const Samples& value : values_) gradients_.emplace_back(value.n, value.shape);
  }
  const nn::Node& node = input_.graph.nodes[index];
  const Samples& dy = gradients_[index];
  const auto dx = [&](int which = 0) -> Samples& { return gradients_[node.inputs[which]]; };
  const auto gradient = [&](int which) -> float* {
    if (which >= static_cast<int>(node.parameters.size())) return nullptr;
    return gradients.data() + input_.graph.parameters[node.parameters[which]].offset;
  };
  std::visit(Overloaded{
                 [&](const nn::Input&) {},
                 [&](const nn::Convolution& l) {
                   convolve_backward(l, input_of(index), parameter(index, 0), dy, dx(), gradient(0), gradient(1));
                 },
                 [&](const nn::BatchNorm& l) {
                   if (!node.learns) {
                     const Moments moments = running_moments(input_.graph, node, input_.statistics);
                     fixed_norm_backward(l, moments, parameter(index, 0), dy, dx());
                   } else {
                     batch_norm_backward(l, input_of(index), parameter(index, 0), dy, dx(), gradient(0), gradient(1));
                   }
                 },
                 [&](const nn::Activation& l) { activate_backward(l, input_of(index), dy, dx()); },
                 [&](const nn::Pooling& l) { pool_backward(l, input_of(index), dy, dx()); },
                 [&](const nn::Dense&) {
                   dense_backward(input_of(index), parameter(index, 0), dy, dx(), gradient(0), gradient(1));
                 },
                 [&](const nn::Flatten&) { add_backward(dy, dx()); },
                 [&](const nn::Add&) {
                   add_backward(dy, dx(0));
                   add_backward(dy, dx(1));
                 },
                 [&](const nn::Concat&) {
                   std::int64_t first = 0;
                   for (const int input : node.inputs) {
                     concat_backward(dy, first, gradients_[input]);
                     first += gradients_[input].shape.size();
                   }
                 },
                 [&](const nn::Multiply&) { multiply_backward(input_of(index), input_of(index, 1), dy, dx(0), dx(1)); },
                 [&](const nn::Dropout& l) { drop_backward(l, draw_key(index), dy, dx()); },
                 [&](const nn::Scale& l) { scale_backward(l, dy, dx()); },
                 [&](const nn::LayerNorm& l) {
                   layer_norm_backward(l, input_of(index), parameter(index, 0), dy, dx(), gradient(0), gradient(1));
                 },
                 [&](const nn::LocalResponseNorm& l) { local_response_norm_backward(l, input_of(index), dy, dx()); },
                 [&](const nn::LayerScale&) {
                   layer_scale_backward(input_of(index), parameter(index, 0), dy, dx(), gradient(0));
                 },
                 [&](const nn::ClassToken&) { class_token_backward(dy, dx(), gradient(0)); },
                 [&](const nn::Position&) { add_position_backward(dy, dx(), gradient(0)); },
                 [&](const nn::FirstToken&) { first_token_backward(dy, dx()); },
                 [&](const nn::Attention& l) { attend_backward(l, input_of(index), dy, dx()); },
                 [&](const nn::SoftmaxLoss& l) { softmax_loss_backward(l, input_of(index), input_.samples, dx()); },
                 [&](const nn::Upsample&) { upsample_backward(dy, dx()); },
                 [&](const nn::Pyramid&) {
                   const nn::Shape& first = input_of(index).shape;
                   const auto places = nn::level_places({static_cast<int>(node.inputs.size()), first.h, first.w});
                   for (std::size_t level = 0; level < places.size(); ++level) {
                     pyramid_backward(places[level], dy, dx(static_cast<int>(level)));
                   }
                 },
                 [&](const nn::KeepLevels& l) { keep_levels_backward(l, dy, dx()); },
                 [&](const nn::DetectionLoss& l) {
                   detection_loss_backward(l, input_of(index), input_of(index, 1), input_.samples, dx(0), dx(1));
                 },
                 [&](const nn::TransposedConvolution& l) {
                   transposed_convolve_backward(l, input_of(index), parameter(index, 0), dy, dx(), gradient(0),
                                                gradient(1));
                 },
                 [&](const nn::RegionAlign& l) { align_regions_backward(l, input_of(index, 1), dy, dx()); },
                 [&](const nn::KeepRegions& l) { keep_regions(l, dy, dx()); },
                 // No gradient goes through regions.
                 [&](const nn::Proposals&) {},
                 [&](const nn::FoundRegions&) {},
                 [&](const nn::RegionLoss& l) {
                   std::vector<Samples*> slopes;
                   for (const int input : node.inputs) slopes.push_back(&gradients_[input]);
                   region_loss_backward(l, draw_key(index), inputs_of(index), input_.samples, slopes);
                 },
             },
             node.layer);
}

void Pass::batch_statistics(std::span<float> statistics) const {
  for (int index = 0; index < static_cast<int>(values_.size()); ++index) {
    const nn::Node& node = input_.graph.nodes[index];
    if (node.statistics.empty() || !node.learns) continue;
    const Samples& x = input_of(index);
    Moments moments = moments_of(x);
    if (x.values.size() == static_cast<std::size_t>(x.shape.c))
      moments.variance = running_moments(input_.graph, node, input_.statistics).variance;
    const auto write = [&](int which, const std::vector<double>& values) {
      std::copy(values.begin(), values.end(),
                statistics.begin() + input_.graph.statistics[node.statistics[which]].offset);
    };
    write(0, moments.mean);
    write(1, moments.variance);
  }
}

}  // namespace dtrain::backend::reference
