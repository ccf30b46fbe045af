// No header of the standard library with code in it: see kernel_vector.hpp.
#include <immintrin.h>

#include "kernel_fused.hpp"
#include "passing_stores.hpp"

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

// Side x Side pixels from (row, column) on; those outside are zero.
template <int Side, typename Number, typename Transform>
inline void transform_pixels(const WinogradPlane& p, const Number* sample, int row, int column, const WinogradSlots& to,
                             Transform by) {
  const auto put = [&](int c) {
    float* const out = to.out + c / to.channels * to.part + c % to.channels;
    return [out, pitch = to.pitch](int y, int x, Register v) { store(out + (y * kSide + x) * pitch, v); };
  };
  const Number* const first = sample + ((int64_t)row * p.w + column) * p.channels;
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

// use(the sample's numbers): a pointer to const float or const Bfloat16.
template <typename Use>
inline void with_numbers(const WinogradPlane& p, const void* sample, Use use) {
  if (p.is_bfloat16) return use((const Bfloat16*)sample);
  use((const float*)sample);
}

void values(const WinogradPlane& p, const void* sample, int row, int column, const WinogradSlots& to) {
  with_numbers(p, sample, [&](const auto* from) { transform_pixels<kSide>(p, from, row - 1, column - 1, to, ByB{}); });
}

void gradients(const WinogradPlane& p, const void* sample, int row, int column, const WinogradSlots& to) {
  with_numbers(p, sample, [&](const auto* from) { transform_pixels<kTile>(p, from, row, column, to, ByA{}); });
}

template <typename Number>
inline void store_results(const WinogradPlane& p, const float* sums, int64_t pitch, const float* bias, int row,
                          int column, Number* sample) {
  each_vector(p.channels, [&](int c) {
    const Register start = bias ? load<Register>(bias + c) : Register{};
    transform<kSide, kTile>(
        ByATransposed{}, [&](int y, int x) { return load<Register>(sums + (y * kSide + x) * pitch + c); },
        [&](int y, int x, Register v) {
          if (!lies_in(p, row + y, column + x)) return;
          const Register result = v + start;
          store(sample + ((int64_t)(row + y) * p.w + column + x) * p.channels + c, result);
        });
  });
}

void results(const WinogradPlane& p, const float* sums, int64_t pitch, const float* bias, int row, int column,
             void* sample) {
  if (p.is_bfloat16) return store_results(p, sums, pitch, bias, row, column, (Bfloat16*)sample);
  store_results(p, sums, pitch, bias, row, column, (float*)sample);
}

// By a non-temporal store. A template, so that each instruction set sees its own instruction alone.
template <typename Numbers>
inline void store_past_caches(float* to, Numbers numbers) {
  if constexpr (sizeof(Numbers) == sizeof(__m512)) {
    _mm512_stream_ps(to, numbers);
  } else if constexpr (sizeof(Numbers) == sizeof(__m256)) {
    _mm256_stream_ps(to, numbers);
  } else {
    _mm_stream_ps(to, numbers);
  }
}

// `past_caches`: `to` is the begin of a line, and `count` fills whole ones.
inline void copy_lines(const float* from, int64_t count, bool past_caches, float* to) {
  for (int64_t k = 0; k < count; k += kRegisterLanes) {
    const Register numbers = load<Register>(from + k);
    if (past_caches) {
      store_past_caches(to + k, numbers);
    } else {
      store(to + k, numbers);
    }
  }
}

// The kernels of neighbouring columns of the product are transformed side by side, one in each lane of a register; some
// rows of a panel in a copy (up to 144 KiB of the thread's stack), so that each position gets its numbers in one piece.
void weights(const WinogradWeights& s, const float* from, float* out) {
  constexpr int kKernel = 3, kSize = kKernel * kKernel, kRows = 16;
  alignas(kLineBytes) float together[kWinogradPositions][kRows * kPanel];
  const int64_t of_out = (int64_t)s.in * kSize, of_in = kSize;
  const int rows = s.turned ? s.out : s.in, columns = s.turned ? s.in : s.out;
  const int64_t row_stride = s.turned ? of_out : of_in, column_stride = s.turned ? of_in : of_out;
  const int panel = panel_of(columns);
  const int64_t pitch = (int64_t)rows * columns;  // between positions
  const bool past_caches = passes_caches(out, kWinogradPositions * pitch);
  for (int column = 0; column < columns; column += panel) {
    for (int row = 0; row < rows; row += kRows) {
      const int number = rows - row < kRows ? rows - row : kRows;
      for (int k = 0; k < number; ++k) {
        for (int first = 0; first < panel; first += kRegisterLanes) {
          const float* const kernels = from + (row + k) * row_stride + (column + first) * column_stride;
          const auto read = [&](int y, int x) {
            const int place = s.turned ? kSize - 1 - (y * kKernel + x) : y * kKernel + x;
            Register v;
            for (int lane = 0; lane < kRegisterLanes; ++lane) v[lane] = kernels[lane * column_stride + place];
            return s.rounds ? rounded_to_bfloat16(v) : v;
          };
          transform<kKernel, kSide>(
              ByG{}, read, [&](int y, int x, Register v) { store(together[y * kSide + x] + k * panel + first, v); });
        }
      }
      float* const to = out + (int64_t)column * rows + (int64_t)row * panel;
      for (int position = 0; position < kWinogradPositions; ++position) {
        copy_lines(together[position], (int64_t)number * panel, past_caches, to + position * pitch);
      }
    }
  }
  if (past_caches) _mm_sfence();  // they must be there before others may read them
}

// Through a copy with a row for each lane, from which whole lines are written: the rows of the weights lie in the same
// few sets of the first cache.
void weights_gradient(const WinogradPart& p, const float* sums, float* gradient) {
  constexpr int kSize = 9;
  const int64_t pitch = (int64_t)p.in * p.out;
  const int row = p.in * kSize;
  alignas(kLineBytes) float ordered[kRegisterLanes][kWinogradRows * kSize];
  each_vector(p.out, [&](int out) {
    for (int in = 0; in < p.in; ++in) {
      float kernels[kSize][kRegisterLanes];
      transform<kSide, 3>(
          ByGTransposed{},
          [&](int y, int x) { return load<Register>(sums + (y * kSide + x) * pitch + (int64_t)in * p.out + out); },
          [&](int y, int x, Register v) { store(kernels[y * 3 + x], v); });
      for (int lane = 0; lane < kRegisterLanes; ++lane) {
        for (int k = 0; k < kSize; ++k) ordered[lane][in * kSize + k] = kernels[k][lane];
      }
    }
    for (int lane = 0; lane < kRegisterLanes; ++lane) {
      float* const to = gradient + (int64_t)(out + lane) * p.all_in * kSize;
      copy_lines(ordered[lane], row, p.passes_caches, to);
    }
  });
  if (p.passes_caches) _mm_sfence();  // it must be there before others may read it
}

}  // namespace

extern const WinogradKernels kWinogradKernels = {values, gradients, results, weights, weights_gradient};

}  // namespace dtrain::backend::cpu::DTRAIN_ISA
