#include "tile_gradient_op.hpp"

#include <algorithm>
#include <cstring>

#include "../kernels/tile_gradient.hpp"
#include "../thread_clock.hpp"
#include "half_numbers.hpp"

namespace dtrain::backend::cpu {
namespace {

std::size_t bytes_of_sums(const TileGradient& shape) {
  return sizeof(float) * static_cast<std::size_t>(shape.sums_size());
}

class TileGradientOp final : public Op {
 public:
  TileGradientOp(const ProductLayer& layer, TensorId source, TensorId gradient)
      : layer_(layer), source_(source), gradient_(gradient) {
    kind = "convolution";
    reads = {source, gradient};
    gradients = {{layer.weight_offset(), shape_of(1).sums_size()}};
  }

  void prepare(int count, int) override { most_ = std::max(most_, count); }
  std::size_t scratchpad_bytes() const override {
    const TileGradient shape = shape_of(most_);
    return turned_bytes(shape) + sizeof(std::uint16_t) * static_cast<std::size_t>(shape.gradient_size());
  }
  std::size_t weight_bytes() const override { return bytes_of_sums(shape_of(1)); }
  std::size_t packed_bytes() const override { return weight_bytes(); }
  std::string shape_name(int count) const override { return layer_.shape_name(count); }
  std::size_t workspace_bytes() const override { return weight_bytes(); }
  void begin(Context&) override {}
  void run(Context& c) override {
    compute(*c.worker, c.count, static_cast<const std::uint16_t*>(c.data(source_)),
            static_cast<const std::uint16_t*>(c.data(gradient_)),
            {workspace<float>(c), c.is_first_chunk(), c.is_last_chunk() ? gradient_of(c) : nullptr});
  }
  void finish(Context& c) override {
    if (c.chunks == 0) std::memset(gradient_of(c), 0, weight_bytes());
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

  double bare_seconds(Worker& worker, int count, int repeats) override {
    const Product& p = layer_.shape();
    const Buffer source = half_numbers(count * p.in.size()), gradient = half_numbers(count * p.out.size());
    const Buffer sums(sizeof(float) * static_cast<std::size_t>(TileSums::size(shape_of(count), true)));
    const Buffer out(weight_bytes());
    return median_seconds(repeats, [&] {
      compute(worker, count, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(),
              {sums.as<float>(), true, out.as<float>()});
    });
  }

 private:
  TileGradient shape_of(int count) const {
    const Product& p = layer_.shape();
    return {.count = count, .h = p.in.h, .w = p.in.w, .in = p.in.c, .out = p.out.c, .stride = p.convolution.stride_h};
  }
  float* gradient_of(const Context& c) const { return c.contribution + layer_.weight_offset(); }
  static std::size_t turned_bytes(const TileGradient& shape) {
    return sizeof(std::uint16_t) * static_cast<std::size_t>(shape.source_size());
  }

  void compute(Worker& worker, int count, const std::uint16_t* source, const std::uint16_t* gradient,
               const TileSums& to) const {
    const TileGradient shape = shape_of(count);
    auto* const turned = worker.scratchpad.as<std::uint16_t>();
    std::uint16_t* const pairs = turned + shape.source_size();
    turn_source(shape, source, turned);
    pair_gradient(shape, gradient, pairs);
    add_tile_products(shape, turned, pairs, to);
  }

  const ProductLayer& layer_;
  const TensorId source_, gradient_;
  int most_ = 1;  // samples of a chunk
};

}  // namespace

bool has_tile_gradient(const Product& p, const CpuModel& cpu) {
  if (!p.is_padded_3x3() || p.convolution.stride_h != p.convolution.stride_w || p.convolution.stride_h > 2)
    return false;
  if (p.dtype != DType::bfloat16 || p.widened || !cpu.has_amx_bf16) return false;
  return p.in.c % kTile == 0 && p.out.c % kTileColumns == 0;
}

std::unique_ptr<Op> make_tile_gradient(const ProductLayer& layer, TensorId source, TensorId gradient) {
  return std::make_unique<TileGradientOp>(layer, source, gradient);
}

}  // namespace dtrain::backend::cpu
