#include "cudnn_convolution.hpp"

namespace dtrain::backend::cuda {

Cudnn::Cudnn(const CudnnFunctions& of, cudaStream_t stream, void* memory, std::uint64_t bytes)
    : functions(of), workspace(memory), workspace_bytes(bytes) {
  check(functions, functions.cudnnCreate(&handle), "its start");
  check(functions, functions.cudnnSetStream(handle, stream), "the choice of a stream");
}

Cudnn::~Cudnn() {
  if (handle) functions.cudnnDestroy(handle);
}

CudnnConvolution::CudnnConvolution(Cudnn& cudnn, const Convolution& work)
    : cudnn_(cudnn),
      plans_({.cudnn = cudnn.functions, .handle = cudnn.handle}, work, cudnn.workspace_bytes),
      operands_(plans_.graph().operands(cudnn.workspace)),
      plan_(plans_.next()) {}

bool CudnnConvolution::run() {
  while (plan_) {
    const cudnnStatus_t status =
        cudnn_.functions.cudnnBackendExecute(cudnn_.handle, plan_->plan.get(), operands_.get());
    if (settled_ || !is_refusal(status)) {
      check(cudnn_.functions, status, "a convolution");
      if (!std::exchange(settled_, true)) plans_.forget();
      return true;
    }
    plan_ = plans_.next();
  }
  return false;
}

}  // namespace dtrain::backend::cuda
