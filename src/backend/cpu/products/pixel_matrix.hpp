// Gradients of a 1x1 convolution or a dense layer as matrix products. Channels-last, a tensor is a matrix with a row
// for each pixel: the gradient by the source is gradient * weights, and that by the weights is the transposed gradient
// * source. A strided convolution uses only some pixels of its source: these are gathered first, or scattered
// afterwards.
#pragma once

#include "../bfloat16.hpp"
#include "../onednn.hpp"

namespace dtrain::backend::cpu {

// Pure. True where oneDNN's matrix product is the faster way: in bfloat16 on AMX. oneDNN 2.6.3 takes 2 to 5 times as
// long for its convolution's gradients, 1.5 times for a dense layer's; oneDNN 3 only where a convolution is strided
// (measured on a Xeon of model 167). In float32 they are equal for pictures; for ViT's tokens the gradient by the
// source takes 0.75 of the time.
bool multiplies_matrices(const Product& p, const CpuModel& cpu, int onednn_major);

// Pixels in one row, as transformers have tokens, or in one column, as detectors have regions; each becomes the pixel
// at its own place. Equal sizes do not say so: a stride of 2 keeps the size of one pixel, and with padding that of 3.
bool has_tokens(const Product& p);

bool is_strided(const Product& p);

// Between all pixels of `count` samples of the source and those that a strided 1x1 convolution uses, in order. Elements
// are of 2 bytes. Pixels that are not used become 0 when scattering.
void gather_pixels(const Product& p, int count, const void* all, void* used);
void scatter_pixels(const Product& p, int count, const void* used, void* all);

}  // namespace dtrain::backend::cpu
