// The loss and the results of a detector's heads. Their arithmetic is that of all backends of the host; its judge is
// torchvision.
#include "../layers.hpp"
#include "picture_samples.hpp"

namespace dtrain::backend::reference {

StepMetrics detection_metrics(const nn::DetectionLoss& layer, const Samples& classes, const Samples& boxes,
                              const HostBatch& of) {
  const AnchorSet anchors = anchors_of(layer);
  StepMetrics metrics;
  metrics.count = classes.n;
  for (int i = 0; i < classes.n; ++i) {
    const HeadLoss loss = head_loss(layer, anchors, objects_of(of, i), {head_of(classes, i), head_of(boxes, i)}, {});
    metrics.parts[0] += loss.classification;
    metrics.parts[1] += loss.boxes;
  }
  metrics.loss_sum = metrics.parts[0] + metrics.parts[1];
  return metrics;
}

void detection_loss_backward(const nn::DetectionLoss& layer, const Samples& classes, const Samples& boxes,
                             const HostBatch& of, Samples& dclasses, Samples& dboxes) {
  const AnchorSet anchors = anchors_of(layer);
  for (int i = 0; i < classes.n; ++i) {
    head_loss(layer, anchors, objects_of(of, i), {head_of(classes, i), head_of(boxes, i)},
              {head_of(dclasses, i), head_of(dboxes, i)});
  }
}

void detect(const nn::DetectionLoss& layer, const Samples& classes, const Samples& boxes, const HostBatch& of,
            std::span<float> results) {
  const AnchorSet anchors = anchors_of(layer);
  const auto size = static_cast<std::size_t>(layer.found.result_size());
  for (int i = 0; i < classes.n; ++i) {
    find_objects(layer, anchors, objects_of(of, i), {head_of(classes, i), head_of(boxes, i)},
                 results.subspan(static_cast<std::size_t>(i) * size, size));
  }
}

}  // namespace dtrain::backend::reference
