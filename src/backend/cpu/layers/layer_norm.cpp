#include <algorithm>
#include <cstring>

#include "../rows.hpp"
#include "token_layers.hpp"

namespace dtrain::backend::cpu {
namespace {

LayerNormRows rows_of_chunk(const nn::LayerNorm& layer, const GainShift& at, const Context& c, TensorId id) {
  const nn::Shape& shape = c.shape(id);
  return {.rows = std::int64_t{c.count} * shape.h * shape.w,
          .channels = shape.c,
          .epsilon = layer.epsilon,
          .gamma = c.parameters + at.gamma,
          .beta = c.parameters + at.beta};
}

class LayerNormOp final : public ChunkOp {
 public:
  LayerNormOp(const nn::LayerNorm& layer, const GainShift& at, const TensorKernels& kernels, TensorId input,
              TensorId output, TensorId moments)
      : layer_(layer), at_(at), kernels_(kernels), input_(input), output_(output), moments_(moments) {
    kind = "layer_norm";
    reads = {input};
    writes = {output};
    if (moments != kNoTensor) writes.push_back(moments);
    in_place_read = input;
    in_place_write = output;
  }
  void run(Context& c) override {
    auto* const moments = moments_ == kNoTensor ? nullptr : static_cast<float*>(c.data(moments_));
    kernels_.layer_norm(c.data(input_), c.data(output_), moments, rows_of_chunk(layer_, at_, c, input_));
  }

 private:
  nn::LayerNorm layer_;
  GainShift at_;
  const TensorKernels& kernels_;
  TensorId input_, output_, moments_;
};

class LayerNormGradient final : public LoopOp {
 public:
  LayerNormGradient(const nn::LayerNorm& layer, const GainShift& at, const TensorKernels& kernels, TensorId input,
                    TensorId gradient, TensorId moments, TensorId result, int channels)
      : layer_(layer),
        at_(at),
        kernels_(kernels),
        input_(input),
        gradient_(gradient),
        moments_(moments),
        result_(result),
        channels_(static_cast<std::size_t>(channels)) {
    kind = "layer_norm_gradient";
    reads = {input, gradient, moments};
    writes = {result};
    in_place_read = gradient;
    in_place_write = result;
    if (at.learns) gradients = {{at.gamma, channels}, {at.beta, channels}};
  }
  std::size_t workspace_bytes() const override {
    return at_.learns ? 2 * channels_ * (sizeof(double) + sizeof(float)) : 0;
  }
  void begin(Context& c) override {
    if (at_.learns) std::fill_n(workspace<double>(c), 2 * channels_, 0.0);
  }
  void run(Context& c) override {
    double* const sums = at_.learns ? workspace<double>(c) : nullptr;
    float* const scratch = at_.learns ? reinterpret_cast<float*>(sums + 2 * channels_) : nullptr;
    kernels_.layer_norm_backward(c.data(input_), c.data(gradient_), static_cast<const float*>(c.data(moments_)),
                                 c.data(result_), sums, scratch, rows_of_chunk(layer_, at_, c, input_));
  }
  void finish(Context& c) override {
    if (!at_.learns) return;
    const double* const sums = workspace<double>(c);
    for (std::size_t k = 0; k < channels_; ++k) {
      c.contribution[static_cast<std::size_t>(at_.gamma) + k] = static_cast<float>(sums[k]);
      c.contribution[static_cast<std::size_t>(at_.beta) + k] = static_cast<float>(sums[channels_ + k]);
    }
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

 private:
  nn::LayerNorm layer_;
  GainShift at_;
  const TensorKernels& kernels_;
  TensorId input_, gradient_, moments_, result_;
  std::size_t channels_;
};

class LayerScaleOp final : public LoopOp {
 public:
  LayerScaleOp(const nn::Shape& shape, std::int64_t gain, const TensorKernels& kernels, TensorId input, TensorId output)
      : shape_(shape), gain_(gain), kernels_(kernels), input_(input), output_(output) {
    kind = "layer_scale";
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  // The gains as a row of the kernels.
  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(row_width(shape_.c)) * sizeof(float); }
  void begin(Context& c) override {
    const RepeatedChannels in_row(shape_.c);
    for (int channel = 0; channel < shape_.c; ++channel) {
      in_row.write(workspace<float>(c), channel, c.parameters[gain_ + channel]);
    }
  }
  void run(Context& c) override {
    kernels_.scale_columns(c.data(input_), workspace<float>(c), c.data(output_), rows_of(shape_, c.count));
  }
  void finish(Context&) override {}
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

 private:
  nn::Shape shape_;
  std::int64_t gain_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class GainGradient final : public LoopOp {
 public:
  GainGradient(const nn::Shape& shape, std::int64_t gain, const TensorKernels& kernels, TensorId input,
               TensorId gradient)
      : shape_(shape), gain_(gain), kernels_(kernels), input_(input), gradient_(gradient) {
    kind = "layer_scale_gradient";
    reads = {input, gradient};
    gradients = {{gain, shape.c}};
  }
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(row_width(shape_.c)) * sizeof(double);
  }
  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }
  void run(Context& c) override {
    kernels_.column_products(c.data(input_), c.data(gradient_), rows_of(shape_, c.count), workspace<double>(c));
  }
  void finish(Context& c) override {
    const RepeatedChannels in_row(shape_.c);
    const double* const sums = workspace<double>(c);
    for (int channel = 0; channel < shape_.c; ++channel) {
      c.contribution[gain_ + channel] = static_cast<float>(in_row.sum(sums, channel));
    }
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

 private:
  nn::Shape shape_;
  std::int64_t gain_;
  const TensorKernels& kernels_;
  TensorId input_, gradient_;
};

}  // namespace

std::unique_ptr<Op> make_layer_norm(const nn::LayerNorm& layer, const GainShift& at, const TensorKernels& kernels,
                                    TensorId input, TensorId output, TensorId moments) {
  return std::make_unique<LayerNormOp>(layer, at, kernels, input, output, moments);
}
std::unique_ptr<Op> make_layer_norm_gradient(const nn::LayerNorm& layer, const GainShift& at, int channels,
                                             const TensorKernels& kernels, TensorId input, TensorId gradient,
                                             TensorId moments, TensorId input_gradient) {
  return std::make_unique<LayerNormGradient>(layer, at, kernels, input, gradient, moments, input_gradient, channels);
}
std::unique_ptr<Op> make_layer_scale(const nn::Shape& shape, std::int64_t gain, const TensorKernels& kernels,
                                     TensorId input, TensorId output) {
  return std::make_unique<LayerScaleOp>(shape, gain, kernels, input, output);
}
std::unique_ptr<Op> make_gain_gradient(const nn::Shape& shape, std::int64_t gain, const TensorKernels& kernels,
                                       TensorId input, TensorId gradient) {
  return std::make_unique<GainGradient>(shape, gain, kernels, input, gradient);
}

}  // namespace dtrain::backend::cpu
