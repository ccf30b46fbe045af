// Attention, head by head of a sample: copies of its queries, keys and values as matrices of float32, and products of
// these. The backward pass computes the shares again: they are more than all that it would read instead.
#include <algorithm>
#include <cmath>

#include "token_layers.hpp"

namespace dtrain::backend::cpu {
namespace {

// One head's matrices in a thread's workspace.
class HeadMemory {
 public:
  HeadMemory(int tokens, int channels)
      : tokens_(static_cast<std::size_t>(tokens)), channels_(static_cast<std::size_t>(channels)) {}
  std::size_t matrix() const { return tokens_ * channels_; }
  std::size_t square() const { return tokens_ * tokens_; }
  std::size_t panel() const { return std::max(tokens_, channels_) * kPanelColumns; }
  std::size_t bytes(std::size_t matrices, std::size_t squares) const {
    return (matrices * matrix() + squares * square() + panel()) * sizeof(float);
  }

 private:
  std::size_t tokens_, channels_;
};

// What both directions do with the head `number` of sample i.
class Head {
 public:
  Head(const nn::Attention& layer, const nn::Shape& in, const TensorKernels& kernels)
      : tokens_(in.h * in.w), width_(in.c / 3), channels_(width_ / layer.heads), kernels_(kernels) {}
  int tokens() const { return tokens_; }
  int width() const { return width_; }
  int channels() const { return channels_; }
  float factor() const { return 1.0f / std::sqrt(static_cast<float>(channels_)); }
  HeadMemory memory() const { return {tokens_, channels_}; }

  // The head's channels from `first` on of each token, which has `row` channels.
  void gather(const Context& c, TensorId id, int i, int first, int row, float* to) const {
    each_token(c, id, i, first, row,
               [&](std::byte* values, std::int64_t at) { kernels_.to_float(values, to + at, channels_); });
  }
  void scatter(const Context& c, TensorId id, int i, int first, int row, const float* from) const {
    each_token(c, id, i, first, row,
               [&](std::byte* values, std::int64_t at) { kernels_.from_float(from + at, values, channels_); });
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
  // shares[query][key].
  void attend(const float* queries, const float* keys, float* shares, float* panel) const {
    multiply(queries, channels_, keys, true, tokens_, shares, panel);
    all_.softmax_rows(shares, tokens_, tokens_, factor());
  }
  // gradient becomes that by the products of queries and keys.
  void attend_backward(const float* shares, float* gradient) const {
    all_.softmax_rows_backward(shares, gradient, tokens_, tokens_, factor());
  }
  void transpose(const float* square, float* to) const { all_.float32.to_planes(square, tokens_, tokens_, to); }

 private:
  template <typename Visit>
  void each_token(const Context& c, TensorId id, int i, int first, int row, Visit visit) const {
    const std::size_t element = bytes_of(c.tensors[static_cast<std::size_t>(id)].dtype);
    auto* const sample = static_cast<std::byte*>(c.sample(id, i));
    for (std::int64_t token = 0; token < tokens_; ++token) {
      visit(sample + static_cast<std::size_t>(token * row + first) * element, token * channels_);
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
  // Queries, keys, values, what comes out; shares.
  std::size_t workspace_bytes() const override { return head_.memory().bytes(4, 1); }
  void run(Context& c) override {
    const std::size_t matrix = head_.memory().matrix();
    float* const queries = workspace<float>(c);
    float *const keys = queries + matrix, *const values = keys + matrix, *const out = values + matrix;
    float *const shares = out + matrix, *const panel = shares + head_.memory().square();
    const int width = head_.width(), row = 3 * width, channels = head_.channels();
    for (int i = 0; i < c.count; ++i) {
      for (int first = 0; first < width; first += channels) {
        head_.gather(c, input_, i, first, row, queries);
        head_.gather(c, input_, i, first + width, row, keys);
        head_.gather(c, input_, i, first + 2 * width, row, values);
        head_.attend(queries, keys, shares, panel);
        head_.multiply(shares, head_.tokens(), values, false, channels, out, panel);
        head_.scatter(c, output_, i, first, width, out);
      }
    }
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
  // Queries, keys, values, the gradient by what came out, a result; shares, their gradient, and one of them transposed.
  std::size_t workspace_bytes() const override { return head_.memory().bytes(5, 3); }
  void run(Context& c) override {
    const std::size_t matrix = head_.memory().matrix(), square = head_.memory().square();
    float* const queries = workspace<float>(c);
    float *const keys = queries + matrix, *const values = keys + matrix, *const gradient = values + matrix;
    float *const out = gradient + matrix, *const shares = out + matrix, *const scores = shares + square;
    float *const transposed = scores + square, *const panel = transposed + square;
    const int width = head_.width(), row = 3 * width, channels = head_.channels(), tokens = head_.tokens();
    for (int i = 0; i < c.count; ++i) {
      for (int first = 0; first < width; first += channels) {
        head_.gather(c, input_, i, first, row, queries);
        head_.gather(c, input_, i, first + width, row, keys);
        head_.gather(c, input_, i, first + 2 * width, row, values);
        head_.gather(c, gradient_, i, first, width, gradient);
        head_.attend(queries, keys, shares, panel);
        head_.transpose(shares, transposed);
        head_.multiply(transposed, tokens, gradient, false, channels, out, panel);
        head_.scatter(c, result_, i, first + 2 * width, row, out);
        head_.multiply(gradient, channels, values, true, tokens, scores, panel);
        head_.attend_backward(shares, scores);
        head_.multiply(scores, tokens, keys, false, channels, out, panel);
        head_.scatter(c, result_, i, first, row, out);
        head_.transpose(scores, transposed);
        head_.multiply(transposed, tokens, queries, false, channels, out, panel);
        head_.scatter(c, result_, i, first + width, row, out);
      }
    }
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
