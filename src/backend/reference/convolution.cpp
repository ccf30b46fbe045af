#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// Where the pieces of a grouped convolution lie. Weight [out, in/groups, kernel_h, kernel_w].
struct Geometry {
  const nn::Convolution& layer;
  int in_per_group, out_per_group;

  Geometry(const nn::Convolution& of, int in_channels)
      : layer(of), in_per_group(in_channels / of.groups), out_per_group(of.out / of.groups) {}

  int first_input(int out) const { return out / out_per_group * in_per_group; }
  int first_output(int in) const { return in / in_per_group * out_per_group; }
  std::size_t weight(int out, int in, int kh, int kw) const {
    const int in_of_group = in - first_input(out);
    return ((static_cast<std::size_t>(out) * in_per_group + in_of_group) * layer.kernel_h + kh) * layer.kernel_w + kw;
  }
};

bool inside(int position, int size) { return position >= 0 && position < size; }

double output_at(const Geometry& g, const Samples& x, const float* weight, int i, int out, int h, int w) {
  const nn::Convolution& l = g.layer;
  double sum = 0;
  for (int in = g.first_input(out); in < g.first_input(out) + g.in_per_group; ++in) {
    for (int kh = 0; kh < l.kernel_h; ++kh) {
      const int xh = h * l.stride_h - l.pad_h + kh * l.dilation_h;
      if (!inside(xh, x.shape.h)) continue;
      for (int kw = 0; kw < l.kernel_w; ++kw) {
        const int xw = w * l.stride_w - l.pad_w + kw * l.dilation_w;
        if (!inside(xw, x.shape.w)) continue;
        sum += static_cast<double>(weight[g.weight(out, in, kh, kw)]) * x.at(i, in, xh, xw);
      }
    }
  }
  return sum;
}

// The output position that reads input position `x` through kernel element `k`, or -1.
int reader(int x, int k, int dilation, int stride, int pad, int outputs) {
  const int start = x + pad - k * dilation;
  return start >= 0 && start % stride == 0 && start / stride < outputs ? start / stride : -1;
}

double input_gradient_at(const Geometry& g, const float* weight, const Samples& dy, int i, int in, int h, int w) {
  const nn::Convolution& l = g.layer;
  double sum = 0;
  for (int out = g.first_output(in); out < g.first_output(in) + g.out_per_group; ++out) {
    for (int kh = 0; kh < l.kernel_h; ++kh) {
      const int yh = reader(h, kh, l.dilation_h, l.stride_h, l.pad_h, dy.shape.h);
      if (yh < 0) continue;
      for (int kw = 0; kw < l.kernel_w; ++kw) {
        const int yw = reader(w, kw, l.dilation_w, l.stride_w, l.pad_w, dy.shape.w);
        if (yw < 0) continue;
        sum += static_cast<double>(weight[g.weight(out, in, kh, kw)]) * dy.at(i, out, yh, yw);
      }
    }
  }
  return sum;
}

double weight_gradient_at(const Geometry& g, const Samples& x, const Samples& dy, int out, int in, int kh, int kw) {
  const nn::Convolution& l = g.layer;
  double sum = 0;
  for (int i = 0; i < x.n; ++i) {
    for (int h = 0; h < dy.shape.h; ++h) {
      const int xh = h * l.stride_h - l.pad_h + kh * l.dilation_h;
      if (!inside(xh, x.shape.h)) continue;
      for (int w = 0; w < dy.shape.w; ++w) {
        const int xw = w * l.stride_w - l.pad_w + kw * l.dilation_w;
        if (!inside(xw, x.shape.w)) continue;
        sum += static_cast<double>(dy.at(i, out, h, w)) * x.at(i, in, xh, xw);
      }
    }
  }
  return sum;
}

double sum_of_channel(const Samples& values, int c) {
  double sum = 0;
  for (int i = 0; i < values.n; ++i) {
    for (int h = 0; h < values.shape.h; ++h) {
      for (int w = 0; w < values.shape.w; ++w) sum += values.at(i, c, h, w);
    }
  }
  return sum;
}

}  // namespace

void convolve(const nn::Convolution& layer, const Samples& x, const float* weight, const float* bias, Samples& y) {
  const Geometry g(layer, x.shape.c);
  for (int i = 0; i < x.n; ++i) {
    for (int out = 0; out < layer.out; ++out) {
      for (int h = 0; h < y.shape.h; ++h) {
        for (int w = 0; w < y.shape.w; ++w) {
          const double sum = output_at(g, x, weight, i, out, h, w);
          y.at(i, out, h, w) = static_cast<float>(sum + (bias ? bias[out] : 0.0f));
        }
      }
    }
  }
}

void convolve_backward(const nn::Convolution& layer, const Samples& x, const float* weight, const Samples& dy,
                       Samples& dx, float* dweight, float* dbias) {
  const Geometry g(layer, x.shape.c);
  for (int i = 0; i < x.n; ++i) {
    for (int in = 0; in < x.shape.c; ++in) {
      for (int h = 0; h < x.shape.h; ++h) {
        for (int w = 0; w < x.shape.w; ++w) {
          dx.at(i, in, h, w) += static_cast<float>(input_gradient_at(g, weight, dy, i, in, h, w));
        }
      }
    }
  }
  for (int out = 0; out < layer.out; ++out) {
    for (int in = g.first_input(out); !layer.frozen && in < g.first_input(out) + g.in_per_group; ++in) {
      for (int kh = 0; kh < layer.kernel_h; ++kh) {
        for (int kw = 0; kw < layer.kernel_w; ++kw) {
          dweight[g.weight(out, in, kh, kw)] += static_cast<float>(weight_gradient_at(g, x, dy, out, in, kh, kw));
        }
      }
    }
    if (dbias) dbias[out] += static_cast<float>(sum_of_channel(dy, out));
  }
}

}  // namespace dtrain::backend::reference
