#include "tile_stem_op.hpp"

#include <cstring>

#include "../kernels/tile_stem.hpp"
#include "../thread_clock.hpp"
#include "half_numbers.hpp"

namespace dtrain::backend::cpu {
namespace {

class TileStemOp final : public Op {
 public:
  TileStemOp(const ProductLayer& layer, TensorId source, TensorId gradient)
      : layer_(layer), source_(source), gradient_(gradient) {
    kind = "convolution";
    reads = {source, gradient};
    gradients = {{layer.weight_offset(), static_cast<std::int64_t>(weight_bytes() / sizeof(float))}};
  }

  void prepare(int, int) override {}
  std::size_t scratchpad_bytes() const override {
    return sizeof(std::uint16_t) * static_cast<std::size_t>(shape_of(1).room_size());
  }
  std::size_t weight_bytes() const override { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const override { return weight_bytes(); }
  std::string shape_name(int count) const override { return layer_.shape_name(count); }
  std::size_t workspace_bytes() const override { return bytes_of_sums(); }
  void begin(Context& c) override { std::memset(workspace<float>(c), 0, bytes_of_sums()); }
  void run(Context& c) override {
    add_stem_products(shape_of(c.count), static_cast<const std::uint16_t*>(c.data(source_)),
                      static_cast<const std::uint16_t*>(c.data(gradient_)), c.worker->scratchpad.as<std::uint16_t>(),
                      workspace<float>(c));
  }
  void finish(Context& c) override {
    order_stem_sums(shape_of(1), workspace<float>(c), c.contribution + layer_.weight_offset());
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

  double bare_seconds(Worker& worker, int count, int repeats) override {
    const Product& p = layer_.shape();
    const Buffer source = half_numbers(count * p.in.size()), gradient = half_numbers(count * p.out.size());
    const Buffer sums(bytes_of_sums());
    std::memset(sums.data(), 0, sums.size());
    return median_seconds(repeats, [&] {
      add_stem_products(shape_of(count), source.as<std::uint16_t>(), gradient.as<std::uint16_t>(),
                        worker.scratchpad.as<std::uint16_t>(), sums.as<float>());
    });
  }

 private:
  TileStem shape_of(int count) const {
    const Product& p = layer_.shape();
    return {.count = count,
            .h = p.in.h,
            .w = p.in.w,
            .in = p.in.c,
            .out = p.out.c,
            .kernel = p.convolution.kernel_h,
            .stride = p.convolution.stride_h,
            .pad = p.convolution.pad_h};
  }
  std::size_t bytes_of_sums() const { return sizeof(float) * static_cast<std::size_t>(shape_of(1).sums_size()); }

  const ProductLayer& layer_;
  const TensorId source_, gradient_;
};

}  // namespace

bool has_tile_stem(const Product& p, const CpuModel& cpu) {
  // Channels of pictures. Kernels of more taps, as those that cut patches have, are left to oneDNN.
  constexpr int kMostChannels = 4, kMostTaps = 256;
  if (p.dense || p.dtype != DType::bfloat16 || p.widened || !cpu.has_amx_bf16) return false;
  const nn::Convolution& c = p.convolution;
  if (!c.is_plain() || c.groups != 1) return false;
  if (c.kernel_h != c.kernel_w || c.stride_h != c.stride_w || c.pad_h != c.pad_w) return false;
  return p.in.c <= kMostChannels && p.in.c * c.kernel_h * c.kernel_w <= kMostTaps && p.out.c % kTileColumns == 0;
}

std::unique_ptr<Op> make_tile_stem(const ProductLayer& layer, TensorId source, TensorId gradient) {
  return std::make_unique<TileStemOp>(layer, source, gradient);
}

}  // namespace dtrain::backend::cpu
