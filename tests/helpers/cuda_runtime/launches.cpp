// launch() of cuda/gpu: kernels, from the last thread to the first, so that no thread may count on an earlier one.
#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "gpu/kernels.hpp"
#include "gpu/native/product.hpp"
#include "gpu/reduction_kernels.hpp"
#include "machine.hpp"
#include "natives.hpp"
#include "own_products.hpp"

namespace dtrain::testing::cuda_runtime {
namespace {

std::function<std::optional<cudaError_t>(const backend::cuda::Work&, cudaStream_t)> natives;

}  // namespace

void play_natives(std::function<std::optional<cudaError_t>(const backend::cuda::Work&, cudaStream_t)> launch) {
  natives = std::move(launch);
}
OwnProducts& own_products() {
  static OwnProducts products;
  return products;
}

}  // namespace dtrain::testing::cuda_runtime

namespace dtrain::backend::cuda {
namespace {

using namespace dtrain::testing::cuda_runtime;

std::string readable(const std::type_info& type) {
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr);
  std::string text = name ? name : type.name();
  std::free(name);
  return text;
}

template <typename Kernel>
Operation operation_of(const Kernel& kernel) {
  return {.name = readable(typeid(Kernel)), .turns = {[kernel] {
                                              for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
                                            }}};
}

// What cudaGetLastError() answers behind a launch: of the launch, or of what went wrong before it.
template <typename Kernel>
cudaError_t launch_kernel(const Kernel& kernel, cudaStream_t handle) {
  if (kernel.threads() <= 0) return cudaSuccess;
  call("launch", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    if (stream.gpu != Machine::gpu()) throw Refusal{cudaErrorInvalidResourceHandle, "a stream of another GPU"};
    machine.submit(stream, [kernel](const CUstream_st&) { return operation_of(kernel); });
  });
  return cudaGetLastError();
}

struct Launch {
  cudaStream_t stream;
  template <typename W>
  cudaError_t operator()(const W& work) const {
    if constexpr (IsKernel<W>) {
      return launch_kernel(work, stream);
    } else {
      return cudaErrorInvalidValue;
    }
  }
};

}  // namespace

cudaError_t launch(const Work& work, cudaStream_t stream) { return work.visit(Launch{stream}); }
std::optional<cudaError_t> launch_native(const Work& work, cudaStream_t stream) {
  return natives ? natives(work, stream) : std::nullopt;
}
bool multiplies_by_wgmma() { return own_products().there; }
cudaError_t launch_product(const Convolution& work, const ProductTile&, void*, cudaStream_t stream) {
  if (own_products().start) return own_products().start(work, stream);
  for (const Call& call : definition_of({"a product", work})) {
    if (const cudaError_t error = launch(call.work, stream); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t launch(const SumOfTwo& kernel, cudaStream_t stream) { return launch_kernel(kernel, stream); }
cudaError_t launch(const NarrowFloats& kernel, cudaStream_t stream) { return launch_kernel(kernel, stream); }
cudaError_t launch(const WidenFloats& kernel, cudaStream_t stream) { return launch_kernel(kernel, stream); }

}  // namespace dtrain::backend::cuda
