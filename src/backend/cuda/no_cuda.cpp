// In place of gpu/ where dtrain is built without nvcc.
#include <dtrain/backend/accelerator.hpp>
#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/error.hpp>

#include "described_gpu.hpp"

namespace dtrain::backend {

std::unique_ptr<cuda::DescribedGpu> cuda::describe_gpu(const std::string&, const std::string&) { return nullptr; }

CudaReport look_for_cuda() {
  return {.built = false,
          .driver = {},
          .libraries = {},
          .gpus = {},
          .problem = "this dtrain was built without CUDA and computes on the CPU only",
          .hint = "use setting 'device' cpu, or a dtrain that was built where nvcc and cuDNN are (-DDTRAIN_CUDA=ON)"};
}

std::unique_ptr<Backend> make_cuda_backend(int, const CudaOptions&) {
  const CudaReport report = look_for_cuda();
  throw UsageError(report.problem, report.hint);
}

std::unique_ptr<Accelerator> open_accelerator(int) {
  const CudaReport report = look_for_cuda();
  throw UsageError(report.problem, report.hint);
}

}  // namespace dtrain::backend
