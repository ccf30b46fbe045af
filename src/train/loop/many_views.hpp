// Evaluation of images in several views: TestViews.
#pragma once

#include <vector>

#include "evaluation.hpp"

namespace dtrain::train {

class ManyViews {
 public:
  explicit ManyViews(const Evaluated& of) : of_(of) {}
  // Same as Executable::evaluate(), from the mean logits.
  backend::StepMetrics evaluate(const backend::HostBatch& batch);

 private:
  Evaluated of_;
  std::vector<float> memory_;  // of the view's images
  std::vector<float> floats_;  // of images that come as bytes
  std::vector<float> logits_, mean_;
};

// The view of one image: pixel (y, x) is pixel (y + dy, x + dx) of the image, which is reflected at its edges without
// repeating them, and then mirrored. Both [c, h, w]; |dy|, |dx| <= 1.
void view_image(const float* image, const nn::Shape& shape, int dy, int dx, bool mirror, float* view);

}  // namespace dtrain::train
