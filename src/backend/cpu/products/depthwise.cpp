#include "depthwise.hpp"

#include <algorithm>
#include <cstring>

namespace dtrain::backend::cpu {
namespace {

Window window_of(const Product& p) {
  const nn::Convolution& c = p.convolution;
  return {.channels = p.in.c,
          .in_h = p.in.h,
          .in_w = p.in.w,
          .out_h = p.out.h,
          .out_w = p.out.w,
          .kernel_h = c.kernel_h,
          .kernel_w = c.kernel_w,
          .stride_h = c.stride_h,
          .stride_w = c.stride_w,
          .pad_h = c.pad_h,
          .pad_w = c.pad_w};
}

// A thread's sums, by position of the kernel and channel, and scratch for a block of channels.
class DepthwiseWeightsGradient final : public LoopOp {
 public:
  DepthwiseWeightsGradient(const ProductLayer& layer, const TensorKernels& kernels, TensorId source, TensorId gradient)
      : layer_(layer),
        kernels_(kernels),
        window_(window_of(layer.shape())),
        pitch_(depthwise_pitch(window_.channels)),
        source_(source),
        gradient_(gradient) {
    kind = "convolution";
    reads = {source, gradient};
    gradients = {{layer.weight_offset(), window_.channels * positions()}};
  }

  std::string shape_name(int count) const override { return layer_.shape_name(count); }
  std::size_t workspace_bytes() const override { return sum_bytes() + sizeof(float) * depthwise_scratch(window_); }
  void begin(Context& c) override { std::memset(workspace<float>(c), 0, sum_bytes()); }
  void run(Context& c) override {
    float* const sums = workspace<float>(c);
    for (int i = 0; i < c.count; ++i) {
      kernels_.depthwise_weights(window_, c.sample(source_, i), c.sample(gradient_, i), sums + pitch_ * positions(),
                                 sums);
    }
  }
  void finish(Context& c) override {
    const float* const sums = workspace<float>(c);
    float* to = c.contribution + layer_.weight_offset();
    for (int channel = 0; channel < window_.channels; ++channel) {
      for (std::int64_t position = 0; position < positions(); ++position) *to++ = sums[position * pitch_ + channel];
    }
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

 private:
  std::int64_t positions() const { return std::int64_t{window_.kernel_h} * window_.kernel_w; }
  std::size_t sum_bytes() const { return sizeof(float) * static_cast<std::size_t>(pitch_ * positions()); }

  const ProductLayer& layer_;
  const TensorKernels& kernels_;
  const Window window_;
  const std::int64_t pitch_;
  const TensorId source_, gradient_;
};

}  // namespace

bool has_own_weights_gradient(const Product& p) {
  constexpr int kQuickInFloat32 = 3;
  const nn::Convolution& c = p.convolution;
  const bool depthwise = !p.dense && c.is_plain() && c.groups > 1 && c.groups == p.in.c && p.in.c == p.out.c;
  return depthwise && (p.dtype == DType::bfloat16 || std::max(c.kernel_h, c.kernel_w) > kQuickInFloat32);
}

std::unique_ptr<Op> make_depthwise_weights_gradient(const ProductLayer& layer, const TensorKernels& kernels,
                                                    TensorId source, TensorId gradient) {
  return std::make_unique<DepthwiseWeightsGradient>(layer, kernels, source, gradient);
}

}  // namespace dtrain::backend::cpu
