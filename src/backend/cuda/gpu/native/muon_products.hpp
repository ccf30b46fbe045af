// Products of all matrices of the rule muon in one launch, a block for each tile.
#pragma once

#include <cuda_runtime.h>

#include "../../kernels/orthogonalise.hpp"

namespace dtrain::backend::cuda {

// For the three types of values: MuonGram, MuonPolynomial and MuonAdvance.
template <typename Product>
cudaError_t launch_muon_products(const Tiled<Product>& work, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
