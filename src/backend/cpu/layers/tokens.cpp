#include <algorithm>
#include <cstring>

#include "token_layers.hpp"

namespace dtrain::backend::cpu {
namespace {

// Bytes of one pixel.
std::size_t token_bytes(const Context& c, TensorId id) {
  const Tensor& tensor = c.tensors[static_cast<std::size_t>(id)];
  return static_cast<std::size_t>(tensor.shape.c) * bytes_of(tensor.dtype);
}

class ClassTokenOp final : public ChunkOp {
 public:
  ClassTokenOp(std::int64_t token, const TensorKernels& kernels, TensorId input, TensorId output)
      : token_(token), kernels_(kernels), input_(input), output_(output) {
    kind = "class_token";
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    const std::size_t first = token_bytes(c, input_);
    const std::size_t rest = c.tensors[static_cast<std::size_t>(input_)].sample_bytes();
    for (int i = 0; i < c.count; ++i) {
      auto* const to = static_cast<std::byte*>(c.sample(output_, i));
      kernels_.from_float(c.parameters + token_, to, c.shape(input_).c);
      std::memcpy(to + first, c.sample(input_, i), rest);
    }
  }

 private:
  std::int64_t token_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

// Copies some bytes of each sample. What the output has more of becomes 0.
class CopyTokens final : public ChunkOp {
 public:
  CopyTokens(const char* of, bool skips_first, TensorId input, TensorId output)
      : skips_first_(skips_first), input_(input), output_(output) {
    kind = of;
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    const std::size_t from = c.tensors[static_cast<std::size_t>(input_)].sample_bytes();
    const std::size_t to = c.tensors[static_cast<std::size_t>(output_)].sample_bytes();
    const std::size_t skipped = skips_first_ ? token_bytes(c, input_) : 0;
    for (int i = 0; i < c.count; ++i) {
      auto* const target = static_cast<std::byte*>(c.sample(output_, i));
      const std::size_t copied = std::min(from - skipped, to);
      std::memcpy(target, static_cast<const std::byte*>(c.sample(input_, i)) + skipped, copied);
      std::memset(target + copied, 0, to - copied);
    }
  }

 private:
  bool skips_first_;
  TensorId input_, output_;
};

class PositionOp final : public ChunkOp {
 public:
  PositionOp(std::int64_t position, const TensorKernels& kernels, TensorId input, TensorId output)
      : position_(position), kernels_(kernels), input_(input), output_(output) {
    kind = "position";
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) {
      kernels_.shift(c.sample(input_, i), c.parameters + position_, c.sample(output_, i), c.shape(input_).size());
    }
  }

 private:
  std::int64_t position_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

// Samples are added one after the other, in double.
class TokenSums final : public LoopOp {
 public:
  TokenSums(std::int64_t to, int size, const TensorKernels& kernels, TensorId gradient)
      : to_(to), size_(static_cast<std::size_t>(size)), kernels_(kernels), gradient_(gradient) {
    kind = "token_gradient";
    reads = {gradient};
    gradients = {{to, size}};
  }
  std::size_t workspace_bytes() const override { return size_ * (sizeof(double) + sizeof(float)); }
  void begin(Context& c) override { std::fill_n(workspace<double>(c), size_, 0.0); }
  void run(Context& c) override {
    double* const sums = workspace<double>(c);
    float* const values = reinterpret_cast<float*>(sums + size_);
    for (int i = 0; i < c.count; ++i) {
      kernels_.to_float(c.sample(gradient_, i), values, static_cast<std::int64_t>(size_));
      for (std::size_t k = 0; k < size_; ++k) sums[k] += static_cast<double>(values[k]);
    }
  }
  void finish(Context& c) override {
    const double* const sums = workspace<double>(c);
    for (std::size_t k = 0; k < size_; ++k)
      c.contribution[static_cast<std::size_t>(to_) + k] = static_cast<float>(sums[k]);
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

 private:
  std::int64_t to_;
  std::size_t size_;
  const TensorKernels& kernels_;
  TensorId gradient_;
};

}  // namespace

std::unique_ptr<Op> make_class_token(std::int64_t token, const TensorKernels& kernels, TensorId input,
                                     TensorId output) {
  return std::make_unique<ClassTokenOp>(token, kernels, input, output);
}
std::unique_ptr<Op> make_class_token_gradient(TensorId gradient, TensorId input_gradient) {
  return std::make_unique<CopyTokens>("class_token_gradient", true, gradient, input_gradient);
}
std::unique_ptr<Op> make_position(std::int64_t position, const TensorKernels& kernels, TensorId input,
                                  TensorId output) {
  return std::make_unique<PositionOp>(position, kernels, input, output);
}
std::unique_ptr<Op> make_token_sums(std::int64_t to, int size, const TensorKernels& kernels, TensorId gradient) {
  return std::make_unique<TokenSums>(to, size, kernels, gradient);
}
std::unique_ptr<Op> make_first_token(TensorId input, TensorId output) {
  return std::make_unique<CopyTokens>("first_token", false, input, output);
}
std::unique_ptr<Op> make_first_token_gradient(TensorId gradient, TensorId input_gradient) {
  return std::make_unique<CopyTokens>("first_token_gradient", false, gradient, input_gradient);
}

}  // namespace dtrain::backend::cpu
