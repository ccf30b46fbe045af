// The pyramid and the loss of one-stage detectors.
#include "../lowering/graph_lowering.hpp"
#include "detection_ops.hpp"

namespace dtrain::backend::cpu {

nn::Levels Lowering::levels_of(int pyramid) const {
  const nn::Shape& first = node(node(pyramid).inputs[0]).output;
  return {static_cast<int>(node(pyramid).inputs.size()), first.h, first.w};
}

void Lowering::backward_pyramid(int index, TensorId dy) {
  const std::vector<nn::LevelPlace> places = nn::level_places(levels_of(index));
  for (std::size_t level = 0; level < places.size(); ++level) {
    const int source = node(index).inputs[level];
    if (!wants_gradient(source)) continue;
    const TensorId dx = new_tensor_like(value(source));
    add(make_pyramid_gradient(places[level], dy, dx), index, ".gradient");
    pass_on(source, dx);
  }
}

HeadTensors Lowering::head_tensors(TensorId classes, TensorId boxes) const {
  return {classes, boxes, &kernels_of(classes), &kernels_of(boxes)};
}

void Lowering::end_with_results(const nn::DetectionLoss& layer) {
  const std::vector<int>& heads = node(loss()).inputs;
  add(make_find_objects(layer, head_tensors(value(heads[0]), value(heads[1]))), loss(), ".results");
}

void Lowering::begin_backward(const nn::DetectionLoss& layer) {
  const int classes = node(loss()).inputs[0], boxes = node(loss()).inputs[1];
  const TensorId by_classes = new_tensor_like(value(classes)), by_boxes = new_tensor_like(value(boxes));
  add(make_detection_loss(layer, first_metric(), head_tensors(value(classes), value(boxes)),
                          head_tensors(by_classes, by_boxes)),
      loss(), "");
  pass_on(classes, by_classes);
  pass_on(boxes, by_boxes);
}

}  // namespace dtrain::backend::cpu
