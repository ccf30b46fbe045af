// The regions between the stages of two-stage detectors, and the loss of both stages.
#include "../lowering/graph_lowering.hpp"
#include "region_ops.hpp"

namespace dtrain::backend::cpu {
namespace {

// The inputs of nn::RegionLoss, in the order of the node; the masks only where the detector has them.
enum RegionInput : std::size_t { kAnchorClasses, kAnchorBoxes, kAll, kRegionClasses, kRegionBoxes, kFound, kMasks };
// Those that a gradient goes to.
constexpr RegionInput kRegionHeads[] = {kAnchorClasses, kAnchorBoxes, kRegionClasses, kRegionBoxes, kMasks};

}  // namespace

RegionTensors Lowering::region_tensors(const std::vector<TensorId>& inputs) const {
  RegionTensors tensors{.anchors = head_tensors(inputs[kAnchorClasses], inputs[kAnchorBoxes]),
                        .regions = head_tensors(inputs[kRegionClasses], inputs[kRegionBoxes]),
                        .all = inputs[kAll],
                        .found = inputs[kFound]};
  if (inputs.size() > kMasks) {
    tensors.masks = inputs[kMasks];
    tensors.of_masks = &kernels_of(inputs[kMasks]);
  }
  return tensors;
}

// Layers that keep the size of a value of regions keep where the regions lie.
RegionRows Lowering::rows_of_regions(int index) const {
  const auto has_size_of_index = [&](const nn::Node& n) {
    return n.output.h == node(index).output.h && n.output.w == node(index).output.w;
  };
  for (const nn::Node* n = &node(index); !n->inputs.empty() && has_size_of_index(*n); n = &node(n->inputs[0])) {
    if (const auto* align = as<nn::RegionAlign>(*n)) {
      return align->apart ? RegionRows{value(n->inputs[1]), align->size + 1} : RegionRows{};
    }
    if (!as<nn::Convolution>(*n) && !as<nn::Activation>(*n) && !as<nn::KeepRegions>(*n)) break;
  }
  return {};
}

void Lowering::end_with_results(const nn::RegionLoss& layer) {
  add(make_region_results(layer.found, region_tensors(values_of_inputs(loss()))), loss(), ".results");
}

void Lowering::begin_backward(const nn::RegionLoss& layer) {
  const std::vector<TensorId> values = values_of_inputs(loss());
  std::vector<TensorId> gradients = values;
  for (const RegionInput head : kRegionHeads) {
    if (head < values.size()) gradients[head] = new_tensor_like(values[head]);
  }
  add(make_region_loss(layer, loss(), first_metric(), region_tensors(values), region_tensors(gradients)), loss(), "");
  for (const RegionInput head : kRegionHeads) {
    if (head < values.size()) pass_on(node(loss()).inputs[head], gradients[head]);
  }
}

}  // namespace dtrain::backend::cpu
