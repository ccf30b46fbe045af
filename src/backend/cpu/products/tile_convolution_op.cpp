#include "tile_convolution_op.hpp"

#include <algorithm>

#include "../kernels/tile_convolution.hpp"
#include "../thread_clock.hpp"
#include "half_numbers.hpp"

namespace dtrain::backend::cpu {
namespace {

std::size_t bytes_of_numbers(std::int64_t numbers) { return sizeof(std::uint16_t) * static_cast<std::size_t>(numbers); }

class TileConvolutionOp final : public Op {
 public:
  TileConvolutionOp(ProductLayer& layer, Direction direction, TensorId operand, TensorId result)
      : layer_(layer), direction_(direction), operand_(operand), result_(result) {
    kind = "convolution";
    reads = {operand};
    writes = {result};
  }

  void prepare(int count, int) override {
    layer_.pack_for(direction_, OwnKernels::tiles);
    most_ = std::max(most_, std::min(count, group()));
  }
  std::size_t scratchpad_bytes() const override { return bytes_of_numbers(shape_of(most_).padded_size()); }
  std::size_t weight_bytes() const override { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const override { return bytes_of_numbers(shape_of(1).weights_size()); }
  std::string shape_name(int count) const override { return layer_.shape_name(count); }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void run(Context& c) override {
    compute(*c.worker, c.count, static_cast<const std::uint16_t*>(c.data(operand_)), bias(c),
            static_cast<std::uint16_t*>(c.data(result_)));
  }
  void finish(Context&) override {}
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

  double bare_seconds(Worker& worker, int count, int repeats) override {
    const Buffer operand = half_numbers(count * operand_shape().size());
    const Buffer result(bytes_of_numbers(count * result_shape().size()));
    return median_seconds(
        repeats, [&] { compute(worker, count, operand.as<std::uint16_t>(), nullptr, result.as<std::uint16_t>()); });
  }

 private:
  static constexpr std::size_t kGroupBytes = 1024 * 1024;

  bool is_forward() const { return direction_ == Direction::forward; }
  const nn::Shape& operand_shape() const { return is_forward() ? layer_.shape().in : layer_.shape().out; }
  const nn::Shape& result_shape() const { return is_forward() ? layer_.shape().out : layer_.shape().in; }
  TileConvolution shape_of(int count) const {
    const Product& p = layer_.shape();
    return {.count = count,
            .h = p.in.h,
            .w = p.in.w,
            .in = p.in.c,
            .out = p.out.c,
            .stride = p.convolution.stride_h,
            .direction = is_forward() ? TileDirection::forward : TileDirection::by_source};
  }
  // Samples whose copies stay in the core's second cache beside the weights that pass by.
  int group() const { return std::max(1, static_cast<int>(kGroupBytes / bytes_of_numbers(shape_of(1).padded_size()))); }
  const float* bias(const Context& c) const {
    return is_forward() && layer_.bias_offset() >= 0 ? c.parameters + layer_.bias_offset() : nullptr;
  }
  const std::uint16_t* weights() const {
    return static_cast<const std::uint16_t*>(is_forward() ? layer_.forward_weights()
                                                          : layer_.backward_weights_packed());
  }

  void compute(Worker& worker, int count, const std::uint16_t* operand, const float* bias,
               std::uint16_t* result) const {
    auto* const padded = worker.scratchpad.as<std::uint16_t>();
    for (int first = 0; first < count; first += most_) {
      const TileConvolution shape = shape_of(std::min(most_, count - first));
      pad_operand(shape, operand + first * operand_shape().size(), padded);
      convolve_tiles(shape, padded, weights(), bias, result + first * result_shape().size());
    }
  }

  ProductLayer& layer_;
  const Direction direction_;
  const TensorId operand_, result_;
  int most_ = 1;  // samples that are computed together
};

}  // namespace

bool has_tile_convolution(const Product& p, Direction direction, const CpuModel& cpu) {
  constexpr int kHalfTile = kTile / 2;
  constexpr std::size_t kSecondCache = 2 << 20;
  const int stride = p.convolution.stride_h;
  if (!p.is_padded_3x3() || stride != p.convolution.stride_w || stride > 2) return false;
  if (p.dtype != DType::bfloat16 || p.out_dtype != DType::bfloat16 || p.widened) return false;
  if (!cpu.has_amx_bf16 || !cpu.has_avx512_bf16) return false;
  if (p.in.c % kTileInner != 0 || p.out.c % kTileInner != 0) return false;
  if (direction == Direction::backward) return stride == 2 || p.in.w <= kHalfTile;
  const std::size_t weights = bytes_of_numbers(std::int64_t{kTilePositions} * p.in.c * p.out.c);
  return p.out.w <= kHalfTile && weights > kSecondCache;
}

std::unique_ptr<Op> make_tile_convolution(ProductLayer& layer, Direction direction, TensorId operand, TensorId result) {
  return std::make_unique<TileConvolutionOp>(layer, direction, operand, result);
}

}  // namespace dtrain::backend::cpu
