#include "reduction_kernels.hpp"

#include "launch_kernel.cuh"

namespace dtrain::backend::cuda {

cudaError_t launch(const SumOfTwo& kernel, cudaStream_t stream) { return launch_kernel(kernel, stream); }
cudaError_t launch(const NarrowFloats& kernel, cudaStream_t stream) { return launch_kernel(kernel, stream); }
cudaError_t launch(const WidenFloats& kernel, cudaStream_t stream) { return launch_kernel(kernel, stream); }

}  // namespace dtrain::backend::cuda
