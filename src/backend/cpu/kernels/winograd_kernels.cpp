// No header of the standard library with code in it: see kernel_vector.hpp.
#include "kernel_fused.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

constexpr int kSide = 6, kTile = kWinogradTile;

// One direction of each transformation; B, A and G are the paper's matrices.

inline void by_b(const Register (&d)[kSide], Register (&out)[kSide]) {  // B^T d
  const Register even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1];
  const Register even2 = d[4] - d[2], odd2 = 2.0f * (d[3] - d[1]);
  out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  out[1] = even + odd;
  out[2] = even - odd;
  out[3] = even2 + odd2;
  out[4] = even2 - odd2;
  out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

inline void by_a(const Register (&y)[kTile], Register (&out)[kSide]) {  // A y
  const Register even = y[0] + y[2], odd = y[1] + y[3];
  const Register even2 = y[0] + 4.0f * y[2], odd2 = 2.0f * y[1] + 8.0f * y[3];
  out[0] = y[0];
  out[1] = even + odd;
  out[2] = even - odd;
  out[3] = even2 + odd2;
  out[4] = even2 - odd2;
  out[5] = y[3];
}

inline void by_a_transposed(const Register (&m)[kSide], Register (&out)[kTile]) {  // A^T m
  const Register sum = m[1] + m[2], difference = m[1] - m[2];
  const Register sum2 = m[3] + m[4], difference2 = m[3] - m[4];
  out[0] = m[0] + sum + sum2;
  out[1] = difference + 2.0f * difference2;
  out[2] = sum + 4.0f * sum2;
  out[3] = difference + 8.0f * difference2 + m[5];
}

inline void by_g(const Register (&g)[3], Register (&out)[kSide]) {  // G g
  const Register ends = g[0] + g[2], outer = (1.0f / 24) * g[0] + (1.0f / 6) * g[2], middle = (1.0f / 12) * g[1];
  out[0] = 0.25f * g[0];
  out[1] = (-1.0f / 6) * (ends + g[1]);
  out[2] = (-1.0f / 6) * (ends - g[1]);
  out[3] = outer + middle;
  out[4] = outer - middle;
  out[5] = g[2];
}

inline void by_g_transposed(const Register (&s)[kSide], Register (&out)[3]) {  // G^T s
  const Register near = (1.0f / 6) * (s[1] + s[2]), far = s[3] + s[4];
  out[0] = 0.25f * s[0] - near + (1.0f / 24) * far;
  out[1] = (1.0f / 6) * (s[2] - s[1]) + (1.0f / 12) * (s[3] - s[4]);
  out[2] = (1.0f / 6) * far - near + s[5];
}

// Both directions of a transformation from In x In values to Out x Out. read(y, x), write(y, x, value).
template <int In, int Out, typename Transform, typename Read, typename Write>
inline void transform(Transform by, Read read, Write write) {
  Register halfway[Out][In];
  for (int x = 0; x < In; ++x) {
    Register column[In], done[Out];
    for (int y = 0; y < In; ++y) column[y] = read(y, x);
    by(column, done);
    for (int y = 0; y < Out; ++y) halfway[y][x] = done[y];
  }
  for (int y = 0; y < Out; ++y) {
    Register done[Out];
    by(halfway[y], done);
    for (int x = 0; x < Out; ++x) write(y, x, done[x]);
  }
}

// Calls work(c) for each vector of channels.
template <typename Work>
inline void each_vector(int channels, Work work) {
  for (int c = 0; c < channels; c += kRegisterLanes) work(c);
}

inline bool lies_in(const WinogradPlane& p, int y, int x) { return y >= 0 && y < p.h && x >= 0 && x < p.w; }

// Side x Side pixels from (row, column) on; those outside are zero. write(position, channel, vector)
template <int Side, typename Transform>
inline void transform_pixels(const WinogradPlane& p, const float* sample, int row, int column, float* out,
                             int64_t pitch, Transform by) {
  const auto put = [&](int c) {
    return [=](int y, int x, Register v) { store(out + (y * kSide + x) * pitch + c, v); };
  };
  const float* const first = sample + ((int64_t)row * p.w + column) * p.channels;
  const int64_t line = (int64_t)p.w * p.channels;
  if (lies_in(p, row, column) && lies_in(p, row + Side - 1, column + Side - 1)) {
    each_vector(p.channels, [&](int c) {
      transform<Side, kSide>(
          by, [&](int y, int x) { return load<Register>(first + y * line + x * p.channels + c); }, put(c));
    });
  } else {
    each_vector(p.channels, [&](int c) {
      transform<Side, kSide>(
          by,
          [&](int y, int x) {
            return lies_in(p, row + y, column + x) ? load<Register>(first + y * line + x * p.channels + c) : Register{};
          },
          put(c));
    });
  }
}

// The transformations as types, so that each is compiled into its loop.
struct ByB {
  void operator()(const Register (&d)[kSide], Register (&out)[kSide]) const { by_b(d, out); }
};
struct ByA {
  void operator()(const Register (&y)[kTile], Register (&out)[kSide]) const { by_a(y, out); }
};
struct ByATransposed {
  void operator()(const Register (&m)[kSide], Register (&out)[kTile]) const { by_a_transposed(m, out); }
};
struct ByG {
  void operator()(const Register (&g)[3], Register (&out)[kSide]) const { by_g(g, out); }
};
struct ByGTransposed {
  void operator()(const Register (&s)[kSide], Register (&out)[3]) const { by_g_transposed(s, out); }
};

void values(const WinogradPlane& p, const float* sample, int row, int column, float* out, int64_t pitch) {
  transform_pixels<kSide>(p, sample, row - 1, column - 1, out, pitch, ByB{});
}

void gradients(const WinogradPlane& p, const float* sample, int row, int column, float* out, int64_t pitch) {
  transform_pixels<kTile>(p, sample, row, column, out, pitch, ByA{});
}

void results(const WinogradPlane& p, const float* sums, int64_t pitch, const float* bias, int row, int column,
             float* sample) {
  each_vector(p.channels, [&](int c) {
    const Register start = bias ? load<Register>(bias + c) : Register{};
    transform<kSide, kTile>(
        ByATransposed{}, [&](int y, int x) { return load<Register>(sums + (y * kSide + x) * pitch + c); },
        [&](int y, int x, Register v) {
          if (!lies_in(p, row + y, column + x)) return;
          store(sample + ((int64_t)(row + y) * p.w + column + x) * p.channels + c, v + start);
        });
  });
}

// The kernels of neighbouring columns of the product are transformed side by side, one in each lane of a register.
void weights(const WinogradWeights& s, const float* from, float* out) {
  constexpr int kKernel = 3, kSize = kKernel * kKernel;
  const int64_t of_out = (int64_t)s.in * kSize, of_in = kSize;
  const int rows = s.turned ? s.out : s.in, columns = s.turned ? s.in : s.out;
  const int64_t row_stride = s.turned ? of_out : of_in, column_stride = s.turned ? of_in : of_out;
  const int panel = panel_of(columns);
  const int64_t pitch = (int64_t)rows * columns;  // between positions
  for (int first = 0; first < columns; first += kRegisterLanes) {
    float* const to = out + (int64_t)(first / panel) * rows * panel + first % panel;
    for (int row = 0; row < rows; ++row) {
      const float* const kernels = from + row * row_stride + first * column_stride;
      const auto read = [&](int y, int x) {
        const int place = s.turned ? kSize - 1 - (y * kKernel + x) : y * kKernel + x;
        Register v;
        for (int lane = 0; lane < kRegisterLanes; ++lane) v[lane] = kernels[lane * column_stride + place];
        return v;
      };
      transform<kKernel, kSide>(ByG{}, read, [&](int y, int x, Register v) {
        store(to + (y * kSide + x) * pitch + (int64_t)row * panel, v);
      });
    }
  }
}

void weights_gradient(const WinogradWeights& s, const float* sums, float* gradient) {
  const int64_t pitch = (int64_t)s.in * s.out;
  for (int in = 0; in < s.in; ++in) {
    each_vector(s.out, [&](int out) {
      transform<kSide, 3>(
          ByGTransposed{},
          [&](int y, int x) { return load<Register>(sums + (y * kSide + x) * pitch + (int64_t)in * s.out + out); },
          [&](int y, int x, Register v) {
            for (int lane = 0; lane < kRegisterLanes; ++lane) {
              gradient[((int64_t)(out + lane) * s.in + in) * 9 + y * 3 + x] = v[lane];
            }
          });
    });
  }
}

}  // namespace

extern const WinogradKernels kWinogradKernels = {values, gradients, results, weights, weights_gradient};

}  // namespace dtrain::backend::cpu::DTRAIN_ISA
