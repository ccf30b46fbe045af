#include "product_layer.hpp"

#include "../kernels/tile_convolution.hpp"

namespace dtrain::backend::cpu {

ProductLayer::ProductLayer(Product shape, std::int64_t weight_offset, std::int64_t bias_offset)
    : shape_(shape), weight_offset_(weight_offset), bias_offset_(bias_offset) {}

Product ProductLayer::with(int n) const {
  Product p = shape_;
  p.n = n;
  return p;
}

// `layout` is what oneDNN prefers for one fixed number of samples: weights are packed once for all numbers, and which
// layout that is must not depend on the number that came first, or the bits would depend on how shards are spread over
// workers.
void ProductLayer::settle(Packed& packed, const dnnl::memory::desc& layout, const dnnl::memory::desc& plain) {
  packed.layout = layout;
  packed.memory = Buffer(layout.get_size());
  packed.from = dnnl::memory(plain, cpu_engine(), nullptr);
  packed.to = dnnl::memory(layout, cpu_engine(), packed.memory.data());
  if (shape_.spread > 0) settle_turned(packed);
  if (shape_.widened) settle_rounded(packed);
  packed.reorder = dnnl::reorder(shape_.widened ? packed.rounded : packed.from, packed.to);
  packed.stale = true;
}

void ProductLayer::settle_rounded(Packed& packed) {
  const dnnl::memory::desc rounded(shape_.weight_dims(), dnnl::memory::data_type::bf16, shape_.plain_weights_format());
  packed.rounded_memory = Buffer(rounded.get_size());
  packed.rounded = dnnl::memory(rounded, cpu_engine(), packed.rounded_memory.data());
  packed.round = dnnl::reorder(packed.from, packed.rounded);
}

void ProductLayer::settle_turned(Packed& packed) {
  packed.turned_memory = Buffer(shape_.plain_weights().get_size());
  packed.spread = dnnl::memory(shape_.spread_weights(), cpu_engine(), nullptr);
  packed.turned = dnnl::memory(shape_.turned_weights(), cpu_engine(), packed.turned_memory.data());
  packed.turn = dnnl::reorder(packed.spread, packed.turned);
}

const Compiled& ProductLayer::forward(int n) {
  if (!is_given(forward_.layout)) settle(forward_, forward_layout(with(kLayoutSamples)), shape_.plain_weights());
  const auto [entry, fresh] = forwards_.try_emplace(n);
  if (fresh) entry->second = compile_forward(with(n), forward_.layout);
  return entry->second;
}

const Compiled& ProductLayer::backward_data(int n) {
  if (!is_given(backward_.layout)) {
    settle(backward_, backward_data_layout(with(kLayoutSamples)),
           shape_.by_matrices ? shape_.plain_matrix() : shape_.plain_weights());
  }
  const auto [entry, fresh] = backward_datas_.try_emplace(n);
  if (fresh) entry->second = compile_backward_data(with(n), backward_.layout);
  return entry->second;
}

const Compiled& ProductLayer::backward_weights(int n) {
  if (!is_given(gradient_layout_)) gradient_layout_ = backward_weights_layout(with(kLayoutSamples));
  const auto [entry, fresh] = backward_weights_.try_emplace(n);
  if (fresh) entry->second = compile_backward_weights(with(n), gradient_layout_);
  return entry->second;
}

void ProductLayer::pack_for(Direction direction, OwnKernels kernels) {
  Packed& weights = packed(direction);
  if (weights.own == kernels) return;
  const auto pairs = static_cast<std::size_t>(shape_.in.c) * static_cast<std::size_t>(shape_.out.c);
  weights.own = kernels;
  weights.memory = Buffer(kernels == OwnKernels::tiles ? sizeof(std::uint16_t) * kTilePositions * pairs
                                                       : sizeof(float) * kWinogradPositions * pairs);
  weights.stale = true;
}

void ProductLayer::pack(Direction direction, const float* parameters, dnnl::stream& stream) {
  auto* const weights = const_cast<float*>(parameters + weight_offset_);  // dnnl::memory knows no const
  pack_own(direction, weights);
  if (is_given(packed(direction).layout)) pack_in_layout(packed(direction), weights, stream);
  packed(direction).stale = false;
}

void ProductLayer::pack_own(Direction direction, const float* weights) {
  const bool is_forward = direction == Direction::forward;
  const Buffer& memory = packed(direction).memory;
  switch (packed(direction).own) {
    case OwnKernels::none:
      return;
    case OwnKernels::minimal_filtering:
      return fused_kernels().winograd->weights(
          {.out = shape_.out.c, .in = shape_.in.c, .turned = !is_forward, .rounds = shape_.dtype == DType::bfloat16},
          weights, memory.as<float>());
    case OwnKernels::tiles:
      return pack_tile_weights({.in = shape_.in.c,
                                .out = shape_.out.c,
                                .direction = is_forward ? TileDirection::forward : TileDirection::by_source},
                               weights, memory.as<std::uint16_t>());
  }
}

void ProductLayer::pack_in_layout(Packed& packed, float* weights, dnnl::stream& stream) const {
  if (shape_.spread > 0) {
    packed.spread.set_data_handle(weights);
    packed.turn.execute(stream, packed.spread, packed.turned);
    weights = packed.turned_memory.as<float>();
  }
  packed.from.set_data_handle(weights);
  if (shape_.widened) packed.round.execute(stream, packed.from, packed.rounded);
  packed.reorder.execute(stream, shape_.widened ? packed.rounded : packed.from, packed.to);
}

std::size_t ProductLayer::packing_bytes(Direction direction) const {
  const std::size_t bytes = packed(direction).memory.size();
  return bytes == 0 ? 0 : shape_.plain_weights().get_size() + bytes;
}

}  // namespace dtrain::backend::cpu
