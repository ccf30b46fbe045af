#include "layers.hpp"

namespace dtrain::backend::cpu {
namespace {

Window window_of(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out) {
  const bool is_max = layer.kind == nn::PoolingKind::max;
  if (layer.global) {
    return {.channels = in.c,
            .in_h = in.h,
            .in_w = in.w,
            .out_h = 1,
            .out_w = 1,
            .kernel_h = in.h,
            .kernel_w = in.w,
            .stride_h = 1,
            .stride_w = 1,
            .max = is_max};
  }
  return {.channels = in.c,
          .in_h = in.h,
          .in_w = in.w,
          .out_h = out.h,
          .out_w = out.w,
          .kernel_h = layer.kernel_h,
          .kernel_w = layer.kernel_w,
          .stride_h = layer.stride_h,
          .stride_w = layer.stride_w,
          .pad_h = layer.pad_h,
          .pad_w = layer.pad_w,
          .max = is_max,
          .count_pad = layer.count_include_pad};
}

class PoolingOp final : public ChunkOp {
 public:
  PoolingOp(const Window& window, const TensorKernels& kernels, TensorId input, TensorId output)
      : window_(window), kernels_(kernels), input_(input), output_(output) {
    kind = "pooling";
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) kernels_.pool(window_, c.sample(input_, i), c.sample(output_, i));
  }

 private:
  Window window_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class PoolingGradient final : public ChunkOp {
 public:
  PoolingGradient(const Window& window, const TensorKernels& kernels, TensorId input, TensorId gradient,
                  TensorId result)
      : window_(window), kernels_(kernels), input_(input), gradient_(gradient), result_(result) {
    kind = "pooling_gradient";
    reads = {gradient};
    if (window.max) reads.push_back(input);
    writes = {result};
  }
  // One sample's sums in float32.
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(window_.in_h) * window_.in_w * window_.channels * sizeof(float);
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) {
      const void* const x = window_.max ? c.sample(input_, i) : nullptr;
      kernels_.pool_backward(window_, x, c.sample(gradient_, i), workspace<float>(c), c.sample(result_, i));
    }
  }

 private:
  Window window_;
  const TensorKernels& kernels_;
  TensorId input_, gradient_, result_;
};

}  // namespace

std::unique_ptr<Op> make_pooling(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out,
                                 const TensorKernels& kernels, TensorId input, TensorId output) {
  return std::make_unique<PoolingOp>(window_of(layer, in, out), kernels, input, output);
}
std::unique_ptr<Op> make_pooling_gradient(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out,
                                          const TensorKernels& kernels, TensorId input, TensorId gradient,
                                          TensorId input_gradient) {
  return std::make_unique<PoolingGradient>(window_of(layer, in, out), kernels, input, gradient, input_gradient);
}

}  // namespace dtrain::backend::cpu
