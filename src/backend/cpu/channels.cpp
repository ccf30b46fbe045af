#include <algorithm>
#include <cstring>

#include "layers.hpp"
#include "rows.hpp"

namespace dtrain::backend::cpu {
namespace {

// Copies all channels of one tensor to or from some channels of another, pixel by pixel.
struct ChannelRange {
  std::size_t narrow_bytes, wide_bytes, offset;  // within the channels of one pixel
  std::int64_t pixels;

  ChannelRange(const Tensor& narrow, const Tensor& wide, int first)
      : narrow_bytes(static_cast<std::size_t>(narrow.shape.c) * bytes_of(narrow.dtype)),
        wide_bytes(static_cast<std::size_t>(wide.shape.c) * bytes_of(wide.dtype)),
        offset(static_cast<std::size_t>(first) * bytes_of(wide.dtype)),
        pixels(std::int64_t{wide.shape.h} * wide.shape.w) {}

  void put(const void* narrow, void* wide, int samples) const {
    auto* to = static_cast<std::byte*>(wide) + offset;
    const auto* from = static_cast<const std::byte*>(narrow);
    for (std::int64_t p = 0; p < samples * pixels; ++p, to += wide_bytes, from += narrow_bytes) {
      std::memcpy(to, from, narrow_bytes);
    }
  }
  void take(const void* wide, void* narrow, int samples) const {
    const auto* from = static_cast<const std::byte*>(wide) + offset;
    auto* to = static_cast<std::byte*>(narrow);
    for (std::int64_t p = 0; p < samples * pixels; ++p, to += narrow_bytes, from += wide_bytes) {
      std::memcpy(to, from, narrow_bytes);
    }
  }
};

const Tensor& tensor_of(const Context& c, TensorId id) { return c.tensors[static_cast<std::size_t>(id)]; }

class ConcatOp final : public ChunkOp {
 public:
  ConcatOp(const std::vector<TensorId>& inputs, TensorId output) : output_(output) {
    kind = "concat";
    reads = inputs;
    writes = {output};
  }
  void run(Context& c) override {
    int first = 0;
    for (const TensorId input : reads) {
      ChannelRange(tensor_of(c, input), tensor_of(c, output_), first).put(c.data(input), c.data(output_), c.count);
      first += c.shape(input).c;
    }
  }

 private:
  TensorId output_;
};

class ConcatGradient final : public ChunkOp {
 public:
  ConcatGradient(TensorId gradient, int first, TensorId result) : gradient_(gradient), first_(first), result_(result) {
    kind = "concat_gradient";
    reads = {gradient};
    writes = {result};
  }
  void run(Context& c) override {
    const ChannelRange range(tensor_of(c, result_), tensor_of(c, gradient_), first_);
    range.take(c.data(gradient_), c.data(result_), c.count);
  }

 private:
  TensorId gradient_;
  int first_;
  TensorId result_;
};

class MultiplyOp final : public ChunkOp {
 public:
  MultiplyOp(const nn::Shape& shape, const TensorKernels& kernels, TensorId input, TensorId factors, TensorId output)
      : shape_(shape), kernels_(kernels), input_(input), factors_(factors), output_(output) {
    kind = "multiply";
    reads = {input, factors};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  // The factors of a sample as a row of the kernels.
  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(row_width(shape_.c)) * sizeof(float); }
  void run(Context& c) override {
    const Rows rows = rows_of(shape_, 1);
    float* const row = workspace<float>(c);
    for (int i = 0; i < c.count; ++i) {
      kernels_.to_float(c.sample(factors_, i), row, shape_.c);
      for (int k = shape_.c; k < rows.width; ++k) row[k] = row[k - shape_.c];
      kernels_.scale_columns(c.sample(input_, i), row, c.sample(output_, i), rows);
    }
  }

 private:
  nn::Shape shape_;
  const TensorKernels& kernels_;
  TensorId input_, factors_, output_;
};

class FactorGradient final : public ChunkOp {
 public:
  FactorGradient(const nn::Shape& shape, const TensorKernels& kernels, TensorId input, TensorId gradient,
                 TensorId result)
      : shape_(shape), kernels_(kernels), input_(input), gradient_(gradient), result_(result) {
    kind = "multiply_gradient";
    reads = {input, gradient};
    writes = {result};
  }
  // Sums of a row of the kernels, and of the channels.
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(row_width(shape_.c)) * (sizeof(double) + sizeof(float));
  }
  void run(Context& c) override {
    const Rows rows = rows_of(shape_, 1);
    const RepeatedChannels in_row(shape_.c);
    double* const sums = workspace<double>(c);
    float* const channels = reinterpret_cast<float*>(sums + rows.width);
    for (int i = 0; i < c.count; ++i) {
      std::fill_n(sums, rows.width, 0.0);
      kernels_.column_products(c.sample(input_, i), c.sample(gradient_, i), rows, sums);
      for (int channel = 0; channel < shape_.c; ++channel) {
        channels[channel] = static_cast<float>(in_row.sum(sums, channel));
      }
      kernels_.from_float(channels, c.sample(result_, i), shape_.c);
    }
  }

 private:
  nn::Shape shape_;
  const TensorKernels& kernels_;
  TensorId input_, gradient_, result_;
};

}  // namespace

std::unique_ptr<Op> make_concat(const std::vector<TensorId>& inputs, TensorId output) {
  return std::make_unique<ConcatOp>(inputs, output);
}
std::unique_ptr<Op> make_concat_gradient(TensorId gradient, int first_channel, TensorId input_gradient) {
  return std::make_unique<ConcatGradient>(gradient, first_channel, input_gradient);
}
std::unique_ptr<Op> make_multiply(const nn::Shape& shape, const TensorKernels& kernels, TensorId input,
                                  TensorId factors, TensorId output) {
  return std::make_unique<MultiplyOp>(shape, kernels, input, factors, output);
}
std::unique_ptr<Op> make_factor_gradient(const nn::Shape& shape, const TensorKernels& kernels, TensorId input,
                                         TensorId gradient, TensorId factor_gradient) {
  return std::make_unique<FactorGradient>(shape, kernels, input, gradient, factor_gradient);
}

}  // namespace dtrain::backend::cpu
