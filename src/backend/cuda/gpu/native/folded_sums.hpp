// FoldedSums in one launch. The block that is the last to finish its part of a tile adds the parts up, in their order.
#pragma once

#include <cuda_runtime.h>

#include "../../kernels/norm_gradient.hpp"
#include "../../kernels/whitening.hpp"

namespace dtrain::backend::cuda {

// For the three types of values: NormStatistics, NormGradientTotals, ColumnTotals and WhiteningTotals.
template <typename Sums, typename Finish>
cudaError_t launch_folded_sums(const FoldedSums<Sums, Finish>& work, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
