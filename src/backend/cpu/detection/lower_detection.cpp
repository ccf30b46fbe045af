// The layers of detectors, both ways.
#include "../graph_lowering.hpp"
#include "detection_ops.hpp"

namespace dtrain::backend::cpu {

bool Lowering::forward_detection_layer(int index, TensorId x) {
  const nn::Node& n = node(index);
  if (as<nn::Upsample>(n)) {
    add(make_upsample(x, new_value(index, n.output)), index, ".forward");
  } else if (as<nn::Pyramid>(n)) {
    std::vector<TensorId> inputs;
    for (const int input : n.inputs) inputs.push_back(value(input));
    add(make_pyramid(levels_of(index), inputs, new_value(index, n.output)), index, ".forward");
  } else if (const auto* keep = as<nn::KeepLevels>(n)) {
    add(make_keep_levels(keep->levels, x, new_value(index, n.output)), index, ".forward");
  } else {
    return false;
  }
  return true;
}

nn::Levels Lowering::levels_of(int pyramid) const {
  const nn::Shape& first = node(node(pyramid).inputs[0]).output;
  return {static_cast<int>(node(pyramid).inputs.size()), first.h, first.w};
}

bool Lowering::backward_detection_layer(int index, TensorId gradient) {
  const nn::Node& n = node(index);
  const int source = n.inputs[0];
  if (as<nn::Pyramid>(n)) return backward_pyramid(index, gradient), true;
  const auto* keep = as<nn::KeepLevels>(n);
  if (!keep && !as<nn::Upsample>(n)) return false;
  if (!wants_gradient(source)) return true;
  const TensorId result = new_tensor_like(value(source));
  if (keep) {
    add(make_keep_levels(keep->levels, gradient, result), index, ".gradient");
  } else {
    add(make_upsample_gradient(kernels_, gradient, result), index, ".gradient");
  }
  pass_on(source, result);
  return true;
}

void Lowering::backward_pyramid(int index, TensorId gradient) {
  const std::vector<nn::LevelPlace> places = nn::level_places(levels_of(index));
  for (std::size_t level = 0; level < places.size(); ++level) {
    const int source = node(index).inputs[level];
    if (!wants_gradient(source)) continue;
    const TensorId result = new_tensor_like(value(source));
    add(make_pyramid_gradient(places[level], gradient, result), index, ".gradient");
    pass_on(source, result);
  }
}

void Lowering::end_with_results(const nn::DetectionLoss& layer) {
  const std::vector<int>& heads = node(size() - 1).inputs;
  add(make_find_objects(layer, head_tensors(value(heads[0]), value(heads[1]))), size() - 1, ".results");
}

void Lowering::begin_backward(const nn::DetectionLoss& layer) {
  const int classes = node(size() - 1).inputs[0], boxes = node(size() - 1).inputs[1];
  const TensorId by_classes = new_tensor_like(value(classes)), by_boxes = new_tensor_like(value(boxes));
  add(make_detection_loss(layer, graph_.parameter_count + graph_.statistic_count,
                          head_tensors(value(classes), value(boxes)), head_tensors(by_classes, by_boxes)),
      size() - 1, "");
  pass_on(classes, by_classes);
  pass_on(boxes, by_boxes);
}

}  // namespace dtrain::backend::cpu
