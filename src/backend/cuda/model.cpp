#include "model.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {
namespace {

// So that the weights of a layer, and the coefficients of a norm, begin at a multiple of 256 bytes in any type.
constexpr std::int64_t kStep = kWeightStep;

}  // namespace

Model::Model(nn::Graph of, DType type, int counted_top_k)
    : graph(std::move(of)),
      dtype(type),
      top_k(std::min(counted_top_k, graph.classes())),
      first_layer(first_layer_of(graph, type)),
      weight_of(graph.nodes.size(), -1),
      norm_of(graph.nodes.size(), 0) {
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    const nn::Layer& layer = node(index).layer;
    const std::int64_t packs = packs_of(node(index).output.c, static_cast<std::int64_t>(16 / value_bytes()));
    tickets = std::max<std::int64_t>(tickets, 2 * sum_tile(packs).tiles);  // native kernels may halve a tile
    if (std::holds_alternative<nn::BatchNorm>(layer)) {
      norm_of[static_cast<std::size_t>(index)] = coefficients;
      coefficients += packs_of(std::int64_t{NormCoefficients::rows} * node(index).output.c, kStep) * kStep;
    }
    const bool has_weight = std::holds_alternative<nn::Dense>(layer) ||
                            std::holds_alternative<nn::Convolution>(layer) ||
                            std::holds_alternative<nn::TransposedConvolution>(layer);
    if (!has_weight) continue;
    PackedWeight weight = packed_weight(copied, parameter(index, 0), plain_shape(index, 1), blocks_of(index));
    weight.frozen = nn::is_held(node(index), 0);
    DTRAIN_CHECK(weight.size <= std::numeric_limits<std::uint32_t>::max(), "a weight of 2^32 elements");
    weight_of[static_cast<std::size_t>(index)] = static_cast<int>(weights.size());
    copied += packs_of(weight.size, kStep) * kStep;
    weights.push_back(weight);
  }
}

std::int64_t Model::parameter(int index, int which) const {
  return graph.parameters[static_cast<std::size_t>(node(index).parameters[static_cast<std::size_t>(which)])].offset;
}

std::int64_t Model::statistic(int index, int which) const {
  return graph.statistics[static_cast<std::size_t>(node(index).statistics[static_cast<std::size_t>(which)])].offset;
}

ConvolutionShape Model::convolution_shape(int index, int n) const {
  const PixelBlocks* const blocks = blocks_of(index);
  return blocks ? shape_on_blocks(plain_shape(index, n), *blocks) : plain_shape(index, n);
}

ConvolutionShape Model::plain_shape(int index, int n) const {
  const nn::Shape& in = node(node(index).inputs[0]).output;
  const nn::Shape& out = node(index).output;
  if (const auto* spread = std::get_if<nn::TransposedConvolution>(&node(index).layer)) {
    const int side = spread->stride;
    return {n, out.c, out.h, out.w, in.c, in.h, in.w, side, side, side, side, 0, 0, 1};
  }
  ConvolutionShape shape = ConvolutionShape::one_pixel(n, static_cast<std::int32_t>(in.size()), out.c);
  if (const auto* layer = std::get_if<nn::Convolution>(&node(index).layer)) {
    shape.in = in.c, shape.in_h = in.h, shape.in_w = in.w;
    shape.out_h = out.h, shape.out_w = out.w;
    shape.kernel_h = layer->kernel_h, shape.kernel_w = layer->kernel_w;
    shape.stride_h = layer->stride_h, shape.stride_w = layer->stride_w;
    shape.pad_h = layer->pad_h, shape.pad_w = layer->pad_w;
    shape.groups = layer->groups;
    shape.dilation_h = layer->dilation_h, shape.dilation_w = layer->dilation_w;
  }
  return shape;
}

Convolution Model::convolution(const Binding& binding, int index, Direction direction) const {
  return {.direction = direction, .shape = convolution_shape(index, binding.n), .dtype = dtype, .any_order = true};
}

NormCoefficients Model::norm_coefficients(const Binding& binding, int norm) const {
  return {binding.coefficients + norm_of[static_cast<std::size_t>(norm)], node(norm).output.c};
}

NormParameters Model::norm_parameters(const Binding& binding, int norm) const {
  const auto& layer = std::get<nn::BatchNorm>(node(norm).layer);
  return {layer.fix_gamma ? nullptr : binding.parameters + parameter(norm, 0), binding.parameters + parameter(norm, 1),
          layer.epsilon};
}

}  // namespace dtrain::backend::cuda
