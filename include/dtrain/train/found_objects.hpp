// What a detector found in a picture, in pixels of the picture as it was before it became the network's input.
#pragma once

#include <span>
#include <vector>

#include <dtrain/nn/detection.hpp>
#include <dtrain/nn/objects.hpp>
#include <dtrain/train/coco_ap.hpp>

namespace dtrain::train {

// `box` is in pixels of the input. `picture` says how the picture lies in it.
data::PixelBox box_in_picture(const nn::PictureObjects& picture, const nn::Box& box);

// Objects borrow their masks from it, so that it is moved and never copied.
struct FoundObjects {
  std::vector<FoundObject> objects;
  std::vector<data::Rle> masks;  // of each; empty where the detector finds boxes alone

  FoundObjects() = default;
  FoundObjects(FoundObjects&&) = default;
  FoundObjects& operator=(FoundObjects&&) = default;
};

// The rows of `result`, as nn::Detections describes them, the best first. An object's area is that of its box.
FoundObjects found_objects(const nn::Detections& layer, const nn::PictureObjects& picture,
                           std::span<const float> result);

}  // namespace dtrain::train
