// Kernels with fused multiply-adds, compiled once for each instruction set that has them. A fused addition rounds once,
// so AVX2 and AVX-512 give other bits than a MatrixProduct, whose bits are the same on all CPUs; and each gives its
// own.
#pragma once

#include <cstdint>

namespace dtrain::backend::cpu {

// No panel is wider; widths that fill it fill those of all kernels.
constexpr int kWidestPanel = 64;

// out = left * right, or out + left * right. Each element is summed over k from 0 on, behind what is there.
struct FusedProduct {
  int rows = 0, inner = 0, columns = 0;  // columns: 16, 32, 48, or a multiple of 64
  const float* left = nullptr;           // element (row, k) at row * left_row + k * left_inner
  std::int64_t left_row = 0, left_inner = 0;
  const float* right = nullptr;  // element (k, column) at k * right_inner + column in its panel
  std::int64_t right_inner = 0, right_panel = 0;
  float* out = nullptr;  // element (row, column) at row * out_row + column
  std::int64_t out_row = 0;
  bool adds = false;
};

struct WinogradPlane {  // one sample, channels-last; channels a multiple of 16
  int channels = 0, h = 0, w = 0;
  bool is_bfloat16 = false;  // its numbers, which are float32 otherwise
};
constexpr int kWinogradTile = 4, kWinogradPositions = 36;
constexpr int kWinogradRows = 48;  // channels of the source in a part: they fill a product's registers

// Weights [out, in, 3, 3] to [36][panels][rows][panel] of a product: a row for each channel that is multiplied, a
// column for each that comes out. turned: as the data's gradient wants them, in * out exchanged and turned by half a
// circle.
struct WinogradWeights {
  int out = 0, in = 0;
  bool turned = false;
  bool rounds = false;  // each weight to the nearest bfloat16 first
};

// Where the values of a tile go: position k of channel c to out[c / channels * part + k * pitch + c % channels].
struct WinogradSlots {
  float* out = nullptr;
  std::int64_t pitch = 0;
  int channels = 0;  // that are neighbours; all of them, or parts that a product takes one after another
  std::int64_t part = 0;
};

// Some channels of a layer, as sums of its weights' gradient are kept: [36][in][out].
struct WinogradPart {
  int in = 0, out = 0;         // `in` at most kWinogradRows
  int all_in = 0;              // channels of the layer's source: so many kernels lie in a row of its weights
  bool passes_caches = false;  // its gradient does: see passing_stores.hpp
};

// Convolutions of 3x3 by minimal filtering, F(4x4, 3x3): Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016. A tile of 4x4 results is made of the 6x6 values around it. Values and weights are transformed
// to 36 positions, at each of which one product of matrices [tiles, in] * [in, out] does what 144 multiplications a
// tile and channel did, and 36 sums a tile are transformed back to 4x4 results. What lies between the numbers of the
// samples and of the weights is float32.
struct WinogradKernels {
  // The tile whose first result is at (row, column), to 36 positions.
  void (*values)(const WinogradPlane& plane, const void* sample, int row, int column, const WinogradSlots& to);
  // The gradient by the tile's results, to the positions of a product with values().
  void (*gradients)(const WinogradPlane& plane, const void* sample, int row, int column, const WinogradSlots& to);
  // From positions to results; bias may be null.
  void (*results)(const WinogradPlane& plane, const float* sums, std::int64_t pitch, const float* bias, int row,
                  int column, void* sample);
  void (*weights)(const WinogradWeights& shape, const float* weights, float* out);
  // To the gradient by the weights [out, in, 3, 3], from the part's first kernel on.
  void (*weights_gradient)(const WinogradPart& part, const float* sums, float* gradient);
};

// A large dense layer's weights [rows][columns] as the flat buffer has them: a row for each number of the result.
struct DenseWeights {
  int rows = 0, columns = 0;  // columns: a multiple of kWidestPanel
  const float* weights = nullptr;
  bool rounds = false;  // each weight to the nearest bfloat16 first
};

// Products with weights that no cache holds, which are read once for all samples (forward: for 64 at a time). A result
// depends on its sample and the weights alone, also in its bits: forward a sum in each lane of a register, which are
// added at the end, backward a sum over the rows from the first one on.
struct DenseKernels {
  // result[samples][rows] = source[samples][columns] * weights + bias, which may be null.
  void (*forward)(const DenseWeights& w, int samples, const float* source, const float* bias, float* result);
  // out[samples][columns] = gradient[samples][rows] * weights; `scratch` has dense_scratch(samples) floats.
  void (*backward)(const DenseWeights& w, int samples, const float* gradient, float* out, float* scratch);
};
constexpr int kDenseBlock = 1 << 16, kDenseSums = 512;  // floats of scratch, and of each sample
constexpr std::int64_t dense_scratch(int samples) { return kDenseBlock + std::int64_t{samples} * kDenseSums; }

struct FusedKernels {
  int widest_panel = 0;  // columns of a product that are computed together
  void (*product)(const FusedProduct& product);
  const WinogradKernels* winograd = nullptr;
  const DenseKernels* dense = nullptr;

  int panel(int columns) const;
};

namespace fused_avx512 {
extern const FusedKernels kFusedKernels;
}
namespace fused_avx2 {
extern const FusedKernels kFusedKernels;
}

// The best that this CPU has. Called only where CpuModel::has_fused_kernels() is true.
const FusedKernels& fused_kernels();

}  // namespace dtrain::backend::cpu
