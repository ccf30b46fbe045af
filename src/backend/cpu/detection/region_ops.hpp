// The layers between the two stages of a detector, each sample by sample on channels-last tensors. Tensors of regions
// are float32.
#pragma once

#include <memory>

#include "detection_ops.hpp"

namespace dtrain::backend::cpu {

std::unique_ptr<Op> make_proposals(const nn::Proposals& layer, int node, bool training, const HeadTensors& heads,
                                   TensorId output);
std::unique_ptr<Op> make_found_regions(const nn::FoundRegions& layer, bool training, TensorId regions,
                                       const HeadTensors& heads, TensorId output);

std::unique_ptr<Op> make_region_align(const nn::RegionAlign& layer, const TensorKernels& kernels, TensorId pyramid,
                                      TensorId regions, TensorId output);
// By the pyramid, region after region.
std::unique_ptr<Op> make_region_align_gradient(const nn::RegionAlign& layer, const TensorKernels& kernels,
                                               TensorId regions, TensorId gradient, TensorId pyramid_gradient);

// What nn::RegionLoss reads, or the gradients by it (`all` and `found` have none).
struct RegionTensors {
  HeadTensors anchors, regions;
  TensorId all = kNoTensor, found = kNoTensor;  // regions
  TensorId masks = kNoTensor;                   // of a detector of boxes alone kNoTensor
  const TensorKernels* of_masks = nullptr;
};
// Writes the contribution's metrics from `first_metric` on and the gradients by the heads.
std::unique_ptr<Op> make_region_loss(const nn::RegionLoss& layer, int node, std::int64_t first_metric,
                                     const RegionTensors& heads, const RegionTensors& gradients);
// Writes to Context::logits.
std::unique_ptr<Op> make_region_results(const nn::Detections& found, const RegionTensors& heads);

}  // namespace dtrain::backend::cpu
