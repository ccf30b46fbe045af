// What the heads of a one-stage detector are worth on one picture, and what they found there; computed in double on
// this CPU, for the backends of the host. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include <dtrain/backend/detection.hpp>
#include <dtrain/nn/detection.hpp>
#include <dtrain/nn/objects.hpp>

#include "boxes.hpp"

namespace dtrain::backend {

// The values of one picture, channels last or planes.
template <typename Value>
struct HeadValues {
  Value* values = nullptr;
  std::int64_t per_pixel = 1, per_channel = 1;  // steps in memory
  Value& at(std::int64_t pixel, std::int64_t channel) const {
    return values[pixel * per_pixel + channel * per_channel];
  }
};

template <typename Value>
struct Heads {
  HeadValues<Value> classes, boxes;
};

// The code of one box.
BoxCode code_of_anchor(const AnchorSet& anchors, std::int64_t anchor, const HeadValues<const float>& boxes);

struct HeadLoss {
  double classification = 0, boxes = 0;
};

// `objects` may be null: the picture shows nothing. Adds to the gradients by the heads; their `classes.values` may be
// null: only the loss is wanted.
HeadLoss head_loss(const nn::DetectionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                   const Heads<const float>& heads, const Heads<float>& gradients);

// Writes DetectionLoss::result_size() numbers. Without `objects` the picture fills the image.
void find_objects(const nn::DetectionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                  const Heads<const float>& heads, std::span<float> result);

}  // namespace dtrain::backend
