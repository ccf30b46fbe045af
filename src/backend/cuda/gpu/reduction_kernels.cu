#include "reduction_kernels.hpp"

#include "launch_body.cuh"

namespace dtrain::backend::cuda {

cudaError_t launch(const SumOfTwo& body, cudaStream_t stream) { return launch_body(body, stream); }
cudaError_t launch(const NarrowFloats& body, cudaStream_t stream) { return launch_body(body, stream); }
cudaError_t launch(const WidenFloats& body, cudaStream_t stream) { return launch_body(body, stream); }

}  // namespace dtrain::backend::cuda
