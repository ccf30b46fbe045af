// Products of matrices on Hopper's tensor cores: 1x1 convolutions of stride 1, in three directions. Unproven: written
// without such a GPU. So it is an engine beside cuDNN's, which computes nothing before it passed a proof on the device
// (engine_rules.hpp).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../product.hpp"

namespace dtrain::backend::cuda {

// Whether the GPU that was chosen has what the kernel is made of.
bool multiplies_by_wgmma();

// `work` is a product_of(), and the workspace has product_workspace() bytes. cudaErrorNotSupported: it cannot be
// started here, and nothing was.
cudaError_t launch_product(const Convolution& work, const ProductTile& tile, void* workspace, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
