// Own kernels: everything between the convolutions. One source, compiled once per instruction set; select_kernels()
// takes the best this CPU has. All variants do the same operations in the same order, so they give the same bits.
//
// Tensors are channels-last: pixels x channels. Kernels see them as rows of `width` = channels * repeat elements, width
// a multiple of 16, so that any number of channels fills whole vectors; per-channel arrays are repeated to `width`.
// What is left over after the last whole row (fewer than `repeat` pixels) is done element by element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../../detection/tap.hpp"

namespace dtrain::backend::cpu {

// The shape of a channels-last tensor as the kernels see it.
struct Rows {
  std::int64_t rows = 0;
  int width = 0;
  int tail = 0;  // elements after the last whole row, a multiple of the channels
};

// Where the ReLU's mask of a batch norm comes from in the backward pass.
enum class Mask { none, from_input, from_output };

struct NormBackward {
  const void* gradient = nullptr;   // of the output
  const void* gradient2 = nullptr;  // a second part of it, may be null
  const void* input = nullptr;      // of the batch norm
  const void* output = nullptr;     // after ReLU, read with Mask::from_output
  void* masked = nullptr;           // written when not null: the whole gradient behind the mask
  Mask mask = Mask::none;
  const float* mean = nullptr;   // [width], as the others below
  const float* scale = nullptr;  // the forward's factors, for Mask::from_input
  const float* shift = nullptr;
};

struct NormGradient {
  const float* factor = nullptr;  // gamma / deviation
  const float* bias = nullptr;    // mean of the gradient
  const float* slope = nullptr;   // what remains along the normalised input, per unit of (input - mean)
};

// Rows of `channels` values, which layer norm takes one by one: the channels fill whole vectors or not.
struct LayerNormRows {
  std::int64_t rows = 0;
  int channels = 0;
  float epsilon = 0;
  const float* gamma = nullptr;  // [channels], as beta
  const float* beta = nullptr;
};

struct Window {  // a pooling layer or a depthwise convolution on one sample
  int channels = 0;
  int in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int kernel_h = 0, kernel_w = 0, stride_h = 0, stride_w = 0, pad_h = 0, pad_w = 0;
  bool max = true;
  bool count_pad = false;
};

// A depthwise convolution computes so many channels together.
constexpr int kDepthwiseChannels = 32;
constexpr std::int64_t depthwise_pitch(int channels) {
  return (std::int64_t{channels} + kDepthwiseChannels - 1) / kDepthwiseChannels * kDepthwiseChannels;
}
// Pixels of a row with its padding, as far as windows reach.
constexpr int depthwise_row(const Window& s) { return (s.out_w - 1) * s.stride_w + s.kernel_w; }
// Floats of scratch: as many rows as the kernel has, and one of the gradient.
constexpr std::size_t depthwise_scratch(const Window& s) {
  const std::int64_t pixels = std::int64_t{s.kernel_h} * depthwise_row(s) + s.out_w;
  return static_cast<std::size_t>(pixels) * kDepthwiseChannels;
}

enum class Curve { relu, relu6, tanh, sigmoid, gelu, silu, hard_swish, hard_sigmoid };

// One optimizer step's numbers for a tensor; `decay` is 0 where it does not decay.
struct StepNumbers {
  double count = 1, rate = 0, momentum = 0, decay = 0;
  double factor = 1;  // on the gradient's rate
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double correction1 = 1, correction2 = 1;  // 1 - beta^t
  double of_gradient = 1, of_mean = 0;      // nn::NadamShares
  double most = __builtin_inf();            // a gradient, divided by the count, is cut to [-most, most]
};

// out = addend_factor * addend + factor * left * right, all row by row. `addend` may be null or `out`, and `right` may
// be `out` where it has its shape.
struct MatrixProduct {
  int rows = 0, inner = 0, columns = 0;
  const float* left = nullptr;   // [rows, inner]
  const float* right = nullptr;  // [inner, columns], or [columns, inner]
  bool right_transposed = false;
  const float* addend = nullptr;  // [rows, columns]
  float addend_factor = 0, factor = 1;
  float* out = nullptr;  // [rows, columns]
};
constexpr int kPanelColumns = 32;  // columns of a product that are computed together

// Kernels on tensors of one element type.
struct TensorKernels {
  // sum[width] += sum of (x - shift), square[width] += sum of its squares.
  void (*moments)(const void* x, Rows rows, const float* shift, double* sum, double* square);
  // out = maybe_relu(x * scale + shift + residual); residual may be null.
  void (*normalise)(const void* x, const void* residual, void* out, Rows rows, const float* scale, const float* shift,
                    bool relu);
  // sum[width] += sum of d, product[width] += sum of d * (input - mean), d the masked gradient.
  void (*norm_backward_sums)(const NormBackward& tensors, Rows rows, double* sum, double* product);
  // out = factor * (d - bias - (input - mean) * slope) + addend; d as above; addend may be null.
  void (*norm_backward)(const NormBackward& tensors, const NormGradient& gradient, const void* addend, void* out,
                        Rows rows);
  void (*column_sums)(const void* x, Rows rows, double* sum);  // sum[width] += sum over rows

  // moments, which may be null: [rows][2], a row's mean and 1 / deviation. `out` may be x.
  void (*layer_norm)(const void* x, void* out, float* moments, const LayerNormRows& shape);
  // The gradient by x, which may lie where `gradient` does. sums[2][channels] += gradients by gamma and beta, null
  // where nothing is to be summed; scratch: as many floats.
  void (*layer_norm_backward)(const void* x, const void* gradient, const float* moments, void* out, double* sums,
                              float* scratch, const LayerNormRows& shape);

  void (*add)(const void* a, const void* b, void* out, std::int64_t count);
  void (*activate)(Curve curve, const void* x, void* out, std::int64_t count);
  // `by`: the activation's output; for gelu and what follows it its input.
  void (*activate_backward)(Curve curve, const void* gradient, const void* by, void* out, std::int64_t count);
  void (*multiply)(const void* x, const float* factor, void* out, std::int64_t count);  // out = x * factor
  void (*shift)(const void* x, const float* term, void* out, std::int64_t count);       // out = x + term

  void (*scale)(const void* x, float factor, void* out, std::int64_t count);        // out = x * factor
  void (*scale_columns)(const void* x, const float* factor, void* out, Rows rows);  // out = x * factor[width]
  void (*column_products)(const void* a, const void* b, Rows rows, double* sum);    // sum[width] += sum of a * b

  void (*pool)(const Window& window, const void* x, void* out);
  // `sums` is scratch for one sample in float32.
  void (*pool_backward)(const Window& window, const void* x, const void* gradient, float* sums, void* out);

  // sums[position of the kernel][depthwise_pitch(channels)] += the gradient by the weights of a depthwise convolution
  // on one sample; `scratch` has depthwise_scratch() floats.
  void (*depthwise_weights)(const Window& window, const void* x, const void* gradient, float* scratch, float* sums);

  // [channels][pixels] float32 to [pixels][channels] of this type.
  void (*load_image)(const float* image, int channels, std::int64_t pixels, void* out);
  // [pixels][channels] to [channels][pixels] and back, one sample.
  void (*to_planes)(const void* x, int channels, std::int64_t pixels, void* out);
  void (*from_planes)(const void* x, int channels, std::int64_t pixels, void* out);
  // out[channels] = the sum of the pixels of x that the taps name, each by its weight, in their order.
  void (*gather)(const void* x, int channels, const Tap* taps, int count, float* out);
  void (*to_float)(const void* x, float* out, std::int64_t count);
  void (*from_float)(const float* x, void* out, std::int64_t count);
};

struct Kernels {
  const char* name;  // of the instruction set
  TensorKernels float32, bfloat16;
  void (*sgd)(const StepNumbers& s, const float* gradient, float* weight, float* momentum, std::int64_t count);
  void (*nag)(const StepNumbers& s, const float* gradient, float* weight, float* momentum, std::int64_t count);
  void (*adam)(const StepNumbers& s, const float* gradient, float* weight, float* mean, float* square,
               std::int64_t count);
  void (*adamw)(const StepNumbers& s, const float* gradient, float* weight, float* mean, float* square,
                std::int64_t count);
  void (*rmsprop)(const StepNumbers& s, const float* gradient, float* weight, float* square, std::int64_t count);
  void (*adagrad)(const StepNumbers& s, const float* gradient, float* weight, float* square, std::int64_t count);
  void (*adamax)(const StepNumbers& s, const float* gradient, float* weight, float* mean, float* largest,
                 std::int64_t count);
  void (*nadam)(const StepNumbers& s, const float* gradient, float* weight, float* mean, float* square,
                std::int64_t count);
  void (*adadelta)(const StepNumbers& s, const float* gradient, float* weight, float* square, float* moved,
                   std::int64_t count);
  void (*signum)(const StepNumbers& s, const float* gradient, float* weight, float* momentum, std::int64_t count);
  void (*ftml)(const StepNumbers& s, const float* gradient, float* weight, float* square, std::int64_t count);
  // Rules lamb and lars: first the directions, then the step along them, whose rate is the tensor's.
  void (*lamb_direction)(const StepNumbers& s, const float* gradient, const float* weight, float* mean, float* square,
                         float* direction, std::int64_t count);
  void (*lamb_step)(const StepNumbers& s, const float* direction, float* weight, std::int64_t count);
  void (*lars_direction)(const StepNumbers& s, const float* gradient, float* direction, std::int64_t count);
  // average += share * (value - average)
  void (*move_average)(double share, const float* value, float* average, std::int64_t count);
  // Rule muon: the momentum goes on, and the direction is what is made orthogonal; then the weight, times `scale`,
  // moves along what came of it.
  void (*muon_direction)(const StepNumbers& s, const float* gradient, float* momentum, float* direction,
                         std::int64_t count);
  void (*muon_step)(const StepNumbers& s, double scale, const float* orthogonal, float* weight, std::int64_t count);
  void (*accumulate)(const float* x, float* sum, std::int64_t count);  // sum += x
  // Each pixel of `sums` that the taps name gets x[channels] by its weight, in their order: what gather() takes back.
  void (*scatter)(const float* x, int channels, const Tap* taps, int count, float* sums);
  double (*sum_of_squares)(const float* x, std::int64_t count);
  // Each row of x becomes softmax(factor * row).
  void (*softmax_rows)(float* x, std::int64_t rows, int columns, float factor);
  // gradient = factor * p * (gradient - sum of p * gradient), row by row: the gradient by what softmax_rows saw.
  void (*softmax_rows_backward)(const float* p, float* gradient, std::int64_t rows, int columns, float factor);
  // Columns [first, first + kPanelColumns) of a product; `panel` is scratch of inner x kPanelColumns floats.
  void (*product_panel)(const MatrixProduct& product, int first, float* panel);
};

const Kernels& select_kernels();

namespace generic {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}

}  // namespace dtrain::backend::cpu
