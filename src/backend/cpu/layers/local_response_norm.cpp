#include <algorithm>
#include <cmath>

#include <dtrain/base/math.hpp>

#include "token_layers.hpp"

namespace dtrain::backend::cpu {
namespace {

// The channels of one pixel, as floats. The rows that sums over neighbours read have zeros around them.
class ResponseRows {
 public:
  ResponseRows(const nn::LocalResponseNorm& layer, int channels)
      : layer_(layer),
        channels_(channels),
        reach_(std::min(layer.size / 2, channels)),
        share_(layer.alpha / static_cast<float>(layer.size)) {}

  int channels() const { return channels_; }
  float share() const { return share_; }
  std::int64_t padded() const { return std::int64_t{channels_} + 2 * reach_; }
  float* inside(float* padded_row) const { return padded_row + reach_; }

  // sums[c] = the values of `row` around c; the row is padded.
  void sum_around(const float* row, float* sums) const {
    std::fill_n(sums, channels_, 0.0f);
    for (int k = 0; k <= 2 * reach_; ++k) {
      for (int c = 0; c < channels_; ++c) sums[c] += row[c + k];
    }
  }

  // divisor = bias + share * sums of squares, factor = divisor^-beta. `squares` is padded.
  void factors(const float* x, float* squares, float* divisor, float* factor) const {
    float* const middle = inside(squares);
    for (int c = 0; c < channels_; ++c) middle[c] = x[c] * x[c];
    sum_around(squares, divisor);
    for (int c = 0; c < channels_; ++c) divisor[c] = layer_.bias + share_ * divisor[c];
    if (layer_.beta == 0.75f) {
      for (int c = 0; c < channels_; ++c) {
        const float root = std::sqrt(divisor[c]);
        factor[c] = 1.0f / (root * std::sqrt(root));
      }
    } else {
      for (int c = 0; c < channels_; ++c) {
        factor[c] = static_cast<float>(portable_exp(-layer_.beta * portable_log(divisor[c])));
      }
    }
  }

 private:
  nn::LocalResponseNorm layer_;
  int channels_, reach_;
  float share_;
};

class LocalResponseNormOp final : public ChunkOp {
 public:
  LocalResponseNormOp(const nn::LocalResponseNorm& layer, int channels, const TensorKernels& kernels, TensorId input,
                      TensorId output)
      : rows_(layer, channels), kernels_(kernels), input_(input), output_(output) {
    kind = "local_response_norm";
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  std::size_t workspace_bytes() const override {
    return sizeof(float) * static_cast<std::size_t>(3 * std::int64_t{rows_.channels()} + rows_.padded());
  }
  void run(Context& c) override {
    const int channels = rows_.channels();
    float* const x = workspace<float>(c);
    float *const divisor = x + channels, *const factor = divisor + channels, *const squares = factor + channels;
    std::fill_n(squares, rows_.padded(), 0.0f);
    each_pixel(c, input_, [&](std::size_t at) {
      kernels_.to_float(static_cast<const std::byte*>(c.data(input_)) + at, x, channels);
      rows_.factors(x, squares, divisor, factor);
      for (int k = 0; k < channels; ++k) x[k] *= factor[k];
      kernels_.from_float(x, static_cast<std::byte*>(c.data(output_)) + at, channels);
    });
  }

  // Calls use(bytes to the pixel) for each pixel of the chunk.
  template <typename Use>
  static void each_pixel(const Context& c, TensorId id, Use use) {
    const Tensor& tensor = c.tensors[static_cast<std::size_t>(id)];
    const std::size_t bytes = static_cast<std::size_t>(tensor.shape.c) * bytes_of(tensor.dtype);
    const std::size_t pixels = static_cast<std::size_t>(c.count) * static_cast<std::size_t>(tensor.shape.h) *
                               static_cast<std::size_t>(tensor.shape.w);
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) use(pixel * bytes);
  }

 private:
  ResponseRows rows_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class LocalResponseNormGradient final : public ChunkOp {
 public:
  LocalResponseNormGradient(const nn::LocalResponseNorm& layer, int channels, const TensorKernels& kernels,
                            TensorId input, TensorId gradient, TensorId result)
      : rows_(layer, channels),
        beta_(layer.beta),
        kernels_(kernels),
        input_(input),
        gradient_(gradient),
        result_(result) {
    kind = "local_response_norm_gradient";
    reads = {input, gradient};
    writes = {result};
    in_place_read = gradient;
    in_place_write = result;
  }
  std::size_t workspace_bytes() const override {
    return sizeof(float) * static_cast<std::size_t>(5 * std::int64_t{rows_.channels()} + rows_.padded());
  }
  // With d the divisors and f = d^-beta, y = x f. A channel counts for its own result, and for the divisors of those
  // around it: dx = dy f - 2 beta share x * the sum around it of (dy x f / d).
  void run(Context& c) override {
    const int channels = rows_.channels();
    float* const x = workspace<float>(c);
    float *const dy = x + channels, *const divisor = dy + channels, *const factor = divisor + channels;
    float *const sums = factor + channels, *const padded = sums + channels;
    std::fill_n(padded, rows_.padded(), 0.0f);
    const float slope = 2 * beta_ * rows_.share();
    LocalResponseNormOp::each_pixel(c, input_, [&](std::size_t at) {
      kernels_.to_float(static_cast<const std::byte*>(c.data(input_)) + at, x, channels);
      kernels_.to_float(static_cast<const std::byte*>(c.data(gradient_)) + at, dy, channels);
      rows_.factors(x, padded, divisor, factor);
      float* const through = rows_.inside(padded);
      for (int k = 0; k < channels; ++k) through[k] = dy[k] * x[k] * factor[k] / divisor[k];
      rows_.sum_around(padded, sums);
      for (int k = 0; k < channels; ++k) dy[k] = dy[k] * factor[k] - slope * x[k] * sums[k];
      kernels_.from_float(dy, static_cast<std::byte*>(c.data(result_)) + at, channels);
    });
  }

 private:
  ResponseRows rows_;
  float beta_;
  const TensorKernels& kernels_;
  TensorId input_, gradient_, result_;
};

}  // namespace

std::unique_ptr<Op> make_local_response_norm(const nn::LocalResponseNorm& layer, int channels,
                                             const TensorKernels& kernels, TensorId input, TensorId output) {
  return std::make_unique<LocalResponseNormOp>(layer, channels, kernels, input, output);
}
std::unique_ptr<Op> make_local_response_norm_gradient(const nn::LocalResponseNorm& layer, int channels,
                                                      const TensorKernels& kernels, TensorId input, TensorId gradient,
                                                      TensorId input_gradient) {
  return std::make_unique<LocalResponseNormGradient>(layer, channels, kernels, input, gradient, input_gradient);
}

}  // namespace dtrain::backend::cpu
