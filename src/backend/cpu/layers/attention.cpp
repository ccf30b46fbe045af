// Attention, head by head of a sample: copies of its queries, keys and values as matrices of float32, and products of
// these. The backward pass computes the shares again: they are more than all that it would read instead.
#include <algorithm>
#include <cmath>
#include <utility>

#include "token_layers.hpp"

namespace dtrain::backend::cpu {
namespace {

// One head's matrices in a thread's workspace: [tokens][channels], squares [tokens][tokens], and behind them the panel
// of a product.
class HeadMemory {
 public:
  HeadMemory(int tokens, int channels)
      : tokens_(static_cast<std::size_t>(tokens)), channels_(static_cast<std::size_t>(channels)) {}
  std::size_t bytes(std::size_t matrices, std::size_t squares) const {
    return (matrices * matrix_size() + squares * square_size() + panel_size()) * sizeof(float);
  }
  // Each takes its place from `free` on.
  float* matrix(float*& free) const { return std::exchange(free, free + matrix_size()); }
  float* square(float*& free) const { return std::exchange(free, free + square_size()); }

 private:
  std::size_t matrix_size() const { return tokens_ * channels_; }
  std::size_t square_size() const { return tokens_ * tokens_; }
  std::size_t panel_size() const { return std::max(tokens_, channels_) * kPanelColumns; }

  std::size_t tokens_, channels_;
};

// The channels from `first` on of a sample's tokens, in a tensor whose tokens have `pitch` channels.
struct HeadPlace {
  TensorId tensor = kNoTensor;
  int sample = 0, first = 0, pitch = 0;
};

// What both directions do with one head.
class Head {
 public:
  Head(const nn::Attention& layer, const nn::Shape& in, const TensorKernels& kernels)
      : tokens_(in.h * in.w), width_(in.c / 3), channels_(width_ / layer.heads), kernels_(kernels) {}
  int tokens() const { return tokens_; }
  int channels() const { return channels_; }
  float factor() const { return 1.0f / std::sqrt(static_cast<float>(channels_)); }
  HeadMemory memory() const { return {tokens_, channels_}; }

  // Calls work(sample, first channel) for each head of each sample.
  template <typename Work>
  void each_head(const Context& c, Work work) const {
    for (int sample = 0; sample < c.count; ++sample) {
      for (int first = 0; first < width_; first += channels_) work(sample, first);
    }
  }
  // Places of the head whose channels begin at `first`: in the layer's input, or the gradient by it, which has the
  // queries of all heads, then their keys, then their values; and in its output.
  HeadPlace queries_in(TensorId input, int sample, int first) const { return {input, sample, first, 3 * width_}; }
  HeadPlace keys_in(TensorId input, int sample, int first) const { return {input, sample, first + width_, 3 * width_}; }
  HeadPlace values_in(TensorId input, int sample, int first) const {
    return {input, sample, first + 2 * width_, 3 * width_};
  }
  HeadPlace result_in(TensorId output, int sample, int first) const { return {output, sample, first, width_}; }

  void gather(const Context& c, const HeadPlace& from, float* to) const {
    each_token(c, from, [&](std::byte* values, std::int64_t at) { kernels_.to_float(values, to + at, channels_); });
  }
  void scatter(const Context& c, const float* from, const HeadPlace& to) const {
    each_token(c, to, [&](std::byte* values, std::int64_t at) { kernels_.from_float(from + at, values, channels_); });
  }
  // out[tokens][columns] = left[tokens][inner] right.
  void multiply(const float* left, int inner, const float* right, bool transposed, int columns, float* out,
                float* panel) const {
    MatrixProduct product{.rows = tokens_, .inner = inner, .columns = columns};
    product.left = left;
    product.right = right;
    product.right_transposed = transposed;
    product.out = out;
    for (int first = 0; first < columns; first += kPanelColumns) all_.product_panel(product, first, panel);
  }
  // shares[query][key] = softmax(factor * queries keys^T).
  void attend(const float* queries, const float* keys, float* shares, float* panel) const {
    multiply(queries, channels_, keys, true, tokens_, shares, panel);
    all_.softmax_rows(shares, tokens_, tokens_, factor());
  }
  // The gradient by the shares becomes that by the products of queries and keys.
  void attend_backward(const float* shares, float* gradient) const {
    all_.softmax_rows_backward(shares, gradient, tokens_, tokens_, factor());
  }
  void transpose(const float* square, float* to) const { all_.float32.to_planes(square, tokens_, tokens_, to); }

 private:
  template <typename Visit>
  void each_token(const Context& c, const HeadPlace& place, Visit visit) const {
    const std::size_t element = bytes_of(c.tensors[static_cast<std::size_t>(place.tensor)].dtype);
    auto* const sample = static_cast<std::byte*>(c.sample(place.tensor, place.sample));
    for (std::int64_t token = 0; token < tokens_; ++token) {
      visit(sample + static_cast<std::size_t>(token * place.pitch + place.first) * element, token * channels_);
    }
  }

  int tokens_, width_, channels_;
  const TensorKernels& kernels_;
  const Kernels& all_ = select_kernels();
};

class AttentionOp final : public ChunkOp {
 public:
  AttentionOp(const nn::Attention& layer, const nn::Shape& in, const TensorKernels& kernels, TensorId input,
              TensorId output)
      : head_(layer, in, kernels), input_(input), output_(output) {
    kind = "attention";
    reads = {input};
    writes = {output};
  }
  // Queries, keys, values, result; shares.
  std::size_t workspace_bytes() const override { return head_.memory().bytes(4, 1); }
  void run(Context& c) override {
    const HeadMemory memory = head_.memory();
    float* free = workspace<float>(c);
    float *const queries = memory.matrix(free), *const keys = memory.matrix(free), *const values = memory.matrix(free);
    float *const result = memory.matrix(free), *const shares = memory.square(free), *const panel = free;
    head_.each_head(c, [&](int sample, int first) {
      head_.gather(c, head_.queries_in(input_, sample, first), queries);
      head_.gather(c, head_.keys_in(input_, sample, first), keys);
      head_.gather(c, head_.values_in(input_, sample, first), values);
      head_.attend(queries, keys, shares, panel);
      head_.multiply(shares, head_.tokens(), values, false, head_.channels(), result, panel);
      head_.scatter(c, result, head_.result_in(output_, sample, first));
    });
  }

 private:
  Head head_;
  TensorId input_, output_;
};

class AttentionGradient final : public ChunkOp {
 public:
  AttentionGradient(const nn::Attention& layer, const nn::Shape& in, const TensorKernels& kernels, TensorId input,
                    TensorId gradient, TensorId result)
      : head_(layer, in, kernels), input_(input), gradient_(gradient), result_(result) {
    kind = "attention_gradient";
    reads = {input, gradient};
    writes = {result};
  }
  // Queries, keys, values, the gradient by the result, that by one of the first three; shares, the gradient by them or
  // by their scores, and one of the two transposed.
  std::size_t workspace_bytes() const override { return head_.memory().bytes(5, 3); }
  void run(Context& c) override {
    const HeadMemory memory = head_.memory();
    const int tokens = head_.tokens(), channels = head_.channels();
    float* free = workspace<float>(c);
    float *const queries = memory.matrix(free), *const keys = memory.matrix(free), *const values = memory.matrix(free);
    float *const dy = memory.matrix(free), *const dx = memory.matrix(free);
    float *const shares = memory.square(free), *const slopes = memory.square(free);
    float *const transposed = memory.square(free), *const panel = free;
    head_.each_head(c, [&](int sample, int first) {
      head_.gather(c, head_.queries_in(input_, sample, first), queries);
      head_.gather(c, head_.keys_in(input_, sample, first), keys);
      head_.gather(c, head_.values_in(input_, sample, first), values);
      head_.gather(c, head_.result_in(gradient_, sample, first), dy);
      head_.attend(queries, keys, shares, panel);

      // By the values: shares^T dy.
      head_.transpose(shares, transposed);
      head_.multiply(transposed, tokens, dy, false, channels, dx, panel);
      head_.scatter(c, dx, head_.values_in(result_, sample, first));

      // By the shares: dy values^T; from it through the softmax, by the products of queries and keys.
      head_.multiply(dy, channels, values, true, tokens, slopes, panel);
      head_.attend_backward(shares, slopes);

      // By the queries: slopes keys.
      head_.multiply(slopes, tokens, keys, false, channels, dx, panel);
      head_.scatter(c, dx, head_.queries_in(result_, sample, first));

      // By the keys: slopes^T queries.
      head_.transpose(slopes, transposed);
      head_.multiply(transposed, tokens, queries, false, channels, dx, panel);
      head_.scatter(c, dx, head_.keys_in(result_, sample, first));
    });
  }

 private:
  Head head_;
  TensorId input_, gradient_, result_;
};

}  // namespace

std::unique_ptr<Op> make_attention(const nn::Attention& layer, const nn::Shape& in, const TensorKernels& kernels,
                                   TensorId input, TensorId output) {
  return std::make_unique<AttentionOp>(layer, in, kernels, input, output);
}
std::unique_ptr<Op> make_attention_gradient(const nn::Attention& layer, const nn::Shape& in,
                                            const TensorKernels& kernels, TensorId input, TensorId gradient,
                                            TensorId input_gradient) {
  return std::make_unique<AttentionGradient>(layer, in, kernels, input, gradient, input_gradient);
}

}  // namespace dtrain::backend::cpu
