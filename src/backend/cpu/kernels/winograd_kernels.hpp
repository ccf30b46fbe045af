// Kernels of convolutions of 3x3 by minimal filtering, F(4x4, 3x3): Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", CVPR 2016. A tile of 4x4 results is made of the 6x6 values around it. Values and weights are
// transformed to 36 positions, at each of which one product of matrices [tiles, in] * [in, out] does what 144
// multiplications a tile and channel did, and 36 sums a tile are transformed back to 4x4 results.
//
// Compiled for AVX-512, as the products.
#pragma once

#include "fused_product.hpp"

namespace dtrain::backend::cpu {

struct WinogradPlane {  // one sample, channels-last; channels a multiple of 16
  int channels = 0, h = 0, w = 0;
};
constexpr int kWinogradTile = 4, kWinogradPositions = 36;

// Weights [out, in, 3, 3] to [36][panels][rows][panel] of fused_product(): a row for each channel that is multiplied, a
// column for each that comes out. turned: as the data's gradient wants them, in * out exchanged and turned by half a
// circle.
struct WinogradWeights {
  int out = 0, in = 0;
  bool turned = false;
};

struct WinogradKernels {
  // The tile whose first result is at (row, column), to 36 positions of `channels` floats that lie `pitch` apart.
  void (*values)(const WinogradPlane& plane, const float* sample, int row, int column, float* out, std::int64_t pitch);
  // The gradient by the tile's results, to the positions of a product with values().
  void (*gradients)(const WinogradPlane& plane, const float* sample, int row, int column, float* out,
                    std::int64_t pitch);
  // From positions to results; bias may be null.
  void (*results)(const WinogradPlane& plane, const float* sums, std::int64_t pitch, const float* bias, int row,
                  int column, float* sample);
  void (*weights)(const WinogradWeights& shape, const float* weights, float* out);
  // [36][in][out] to the gradient by the weights [out, in, 3, 3].
  void (*weights_gradient)(const WinogradWeights& shape, const float* sums, float* gradient);
};

extern const WinogradKernels kWinogradKernels;

}  // namespace dtrain::backend::cpu
