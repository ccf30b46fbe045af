// launch() of cuda/gpu: bodies, from the last thread to the first, so that no thread may count on an earlier one.
#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "gpu/kernels.hpp"
#include "gpu/reduction_kernels.hpp"
#include "machine.hpp"

namespace dtrain::backend::cuda {
namespace {

using namespace dtrain::testing::cuda_runtime;

std::string readable(const std::type_info& type) {
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr);
  std::string text = name ? name : type.name();
  std::free(name);
  return text;
}

template <typename Body>
Operation operation_of(const Body& body) {
  return {.name = readable(typeid(Body)), .turns = {[body] {
                                            for (std::int64_t i = body.threads() - 1; i >= 0; --i) body(i);
                                          }}};
}

// What cudaGetLastError() answers behind a launch: of the launch, or of what went wrong before it.
template <typename Body>
cudaError_t launch_body(const Body& body, cudaStream_t handle) {
  if (body.threads() <= 0) return cudaSuccess;
  call("launch", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    if (stream.gpu != Machine::gpu()) throw Refusal{cudaErrorInvalidResourceHandle, "a stream of another GPU"};
    machine.submit(stream, [body](const CUstream_st&) { return operation_of(body); });
  });
  return cudaGetLastError();
}

struct Launch {
  cudaStream_t stream;
  cudaError_t operator()(const Convolution&) const { return cudaErrorInvalidValue; }
  template <typename Body>
  cudaError_t operator()(const Body& body) const {
    return launch_body(body, stream);
  }
};

}  // namespace

cudaError_t launch(const Work& work, cudaStream_t stream) { return std::visit(Launch{stream}, work); }
cudaError_t launch(const SumOfTwo& body, cudaStream_t stream) { return launch_body(body, stream); }
cudaError_t launch(const NarrowFloats& body, cudaStream_t stream) { return launch_body(body, stream); }
cudaError_t launch(const WidenFloats& body, cudaStream_t stream) { return launch_body(body, stream); }

}  // namespace dtrain::backend::cuda
