// The layers of two-stage detectors, both ways.
#include "../graph_lowering.hpp"
#include "region_ops.hpp"

namespace dtrain::backend::cpu {

HeadTensors Lowering::head_tensors(TensorId classes, TensorId boxes) {
  return {classes, boxes, &kernels_for(all_kernels_, program().tensor(classes).dtype),
          &kernels_for(all_kernels_, program().tensor(boxes).dtype)};
}

RegionTensors Lowering::region_tensors(const std::vector<TensorId>& inputs) {
  RegionTensors tensors{.anchors = head_tensors(inputs[0], inputs[1]),
                        .regions = head_tensors(inputs[3], inputs[4]),
                        .all = inputs[2],
                        .found = inputs[5]};
  if (inputs.size() > 6) {
    tensors.masks = inputs[6];
    tensors.of_masks = &kernels_for(all_kernels_, program().tensor(inputs[6]).dtype);
  }
  return tensors;
}

std::vector<TensorId> Lowering::values_of_inputs(int index) const {
  std::vector<TensorId> values;
  for (const int input : node(index).inputs) values.push_back(value(input));
  return values;
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

bool Lowering::forward_region_layer(int index) {
  const nn::Node& n = node(index);
  const auto x = [&](std::size_t which) { return value(n.inputs[which]); };
  if (const auto* proposals = as<nn::Proposals>(n)) {
    add(make_proposals(*proposals, index, training_, head_tensors(x(0), x(1)), new_value(index, n.output)), index,
        ".forward");
  } else if (const auto* align = as<nn::RegionAlign>(n)) {
    add(make_region_align(*align, kernels_, x(0), x(1), new_value(index, n.output)), index, ".forward");
  } else if (const auto* keep = as<nn::KeepRegions>(n)) {
    add(make_keep_regions(*keep, n.output, x(0), new_value(index, n.output)), index, ".forward");
  } else if (const auto* found = as<nn::FoundRegions>(n)) {
    add(make_found_regions(*found, training_, x(0), head_tensors(x(1), x(2)), new_value(index, n.output)), index,
        ".forward");
  } else {
    return false;
  }
  return true;
}

bool Lowering::backward_region_layer(int index, TensorId gradient) {
  const nn::Node& n = node(index);
  const auto* const align = as<nn::RegionAlign>(n);
  const auto* const keep = as<nn::KeepRegions>(n);
  if (!align && !keep) return false;
  const int source = n.inputs[0];
  if (!wants_gradient(source)) return true;
  const TensorId result = new_tensor_like(value(source));
  if (align) {
    add(make_region_align_gradient(*align, kernels_, value(n.inputs[1]), gradient, result), index, ".gradient");
  } else {
    add(make_keep_regions(*keep, n.output, gradient, result), index, ".gradient");
  }
  pass_on(source, result);
  return true;
}

void Lowering::end_with_results(const nn::RegionLoss& layer) {
  add(make_region_results(layer.found, region_tensors(values_of_inputs(size() - 1))), size() - 1, ".results");
}

void Lowering::begin_backward(const nn::RegionLoss& layer) {
  const std::vector<int>& inputs = node(size() - 1).inputs;
  const std::vector<TensorId> heads = values_of_inputs(size() - 1);
  std::vector<TensorId> slopes = heads;
  for (const std::size_t which : {0u, 1u, 3u, 4u, 6u}) {
    if (which < heads.size()) slopes[which] = new_tensor_like(heads[which]);
  }
  add(make_region_loss(layer, size() - 1, graph_.parameter_count + graph_.statistic_count, region_tensors(heads),
                       region_tensors(slopes)),
      size() - 1, "");
  for (const std::size_t which : {0u, 1u, 3u, 4u, 6u}) {
    if (which < heads.size()) pass_on(inputs[which], slopes[which]);
  }
}

}  // namespace dtrain::backend::cpu
