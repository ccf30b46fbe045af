#include "../layers.hpp"

namespace dtrain::backend::reference {
namespace {

// Weight [in, out, stride, stride].
std::size_t weight_at(const nn::TransposedConvolution& layer, int in, int out, int row, int column) {
  return ((static_cast<std::size_t>(in) * layer.out + out) * layer.stride + row) * layer.stride + column;
}

}  // namespace

void transposed_convolve(const nn::TransposedConvolution& layer, const Samples& x, const float* weight,
                         const float* bias, Samples& y) {
  for (int i = 0; i < y.n; ++i) {
    for (int out = 0; out < y.shape.c; ++out) {
      for (int h = 0; h < y.shape.h; ++h) {
        for (int w = 0; w < y.shape.w; ++w) {
          double sum = bias[out];
          for (int in = 0; in < x.shape.c; ++in) {
            sum += static_cast<double>(x.at(i, in, h / layer.stride, w / layer.stride)) *
                   weight[weight_at(layer, in, out, h % layer.stride, w % layer.stride)];
          }
          y.at(i, out, h, w) = static_cast<float>(sum);
        }
      }
    }
  }
}

void transposed_convolve_backward(const nn::TransposedConvolution& layer, const Samples& x, const float* weight,
                                  const Samples& dy, Samples& dx, float* dweight, float* dbias) {
  std::vector<double> by_weight(static_cast<std::size_t>(x.shape.c) * layer.out * layer.stride * layer.stride, 0.0);
  std::vector<double> by_bias(static_cast<std::size_t>(layer.out), 0.0);
  for (int i = 0; i < dy.n; ++i) {
    for (int h = 0; h < dy.shape.h; ++h) {
      for (int w = 0; w < dy.shape.w; ++w) {
        const int from_h = h / layer.stride, from_w = w / layer.stride;
        for (int out = 0; out < layer.out; ++out) by_bias[static_cast<std::size_t>(out)] += dy.at(i, out, h, w);
        for (int in = 0; in < x.shape.c; ++in) {
          double sum = 0;
          for (int out = 0; out < layer.out; ++out) {
            const std::size_t at = weight_at(layer, in, out, h % layer.stride, w % layer.stride);
            const double slope = dy.at(i, out, h, w);
            sum += slope * weight[at];
            by_weight[at] += slope * x.at(i, in, from_h, from_w);
          }
          dx.at(i, in, from_h, from_w) += static_cast<float>(sum);
        }
      }
    }
  }
  for (std::size_t k = 0; k < by_weight.size(); ++k) dweight[k] += static_cast<float>(by_weight[k]);
  for (std::size_t k = 0; k < by_bias.size(); ++k) dbias[k] += static_cast<float>(by_bias[k]);
}

}  // namespace dtrain::backend::reference
