// What a detector has beside convolutions: its pyramid, and the loss and the results of its heads. Each works sample by
// sample on channels-last tensors.
#pragma once

#include <memory>
#include <vector>

#include "../program.hpp"

namespace dtrain::backend::cpu {

// Each pixel of the output is the nearest one of the input.
std::unique_ptr<Op> make_upsample(TensorId input, TensorId output);
// The gradients of all pixels that one was copied to, in the order of rows.
std::unique_ptr<Op> make_upsample_gradient(const TensorKernels& kernels, TensorId gradient, TensorId input_gradient);

std::unique_ptr<Op> make_pyramid(const nn::Levels& levels, const std::vector<TensorId>& inputs, TensorId output);
std::unique_ptr<Op> make_pyramid_gradient(const nn::LevelPlace& place, TensorId gradient, TensorId input_gradient);
// Forward and backward are the same.
std::unique_ptr<Op> make_keep_levels(const nn::Levels& levels, TensorId input, TensorId output);
std::unique_ptr<Op> make_keep_regions(const nn::KeepRegions& layer, const nn::Shape& shape, TensorId input,
                                      TensorId output);

// The tensors of the two heads, with the kernels of their type.
struct HeadTensors {
  TensorId classes = kNoTensor, boxes = kNoTensor;
  const TensorKernels *of_classes = nullptr, *of_boxes = nullptr;
};
// Writes the contribution's metrics from `first_metric` on and the gradients by the heads.
std::unique_ptr<Op> make_detection_loss(const nn::DetectionLoss& layer, std::int64_t first_metric,
                                        const HeadTensors& heads, const HeadTensors& gradients);
// Writes to Context::logits.
std::unique_ptr<Op> make_find_objects(const nn::DetectionLoss& layer, const HeadTensors& heads);

}  // namespace dtrain::backend::cpu
