#include "kernels.hpp"

#include "detection_kernels.hpp"
#include "launch_kernel.cuh"

namespace dtrain::backend::cuda {
namespace {

struct Launch {
  cudaStream_t stream;
  template <typename W>
  cudaError_t operator()(const W& work) const {
    if constexpr (std::is_same_v<W, DetectionWork>) {
      return launch_detection(work, stream);
    } else if constexpr (IsKernel<W> && !std::is_same_v<W, EventMarker>) {
      return launch_kernel(work, stream);
    } else {
      return cudaErrorInvalidValue;  // an operation, or an event
    }
  }
};

}  // namespace

cudaError_t launch(const Work& work, cudaStream_t stream) { return work.visit(Launch{stream}); }

}  // namespace dtrain::backend::cuda
