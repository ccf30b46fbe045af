// cuda*: streams.
#include "machine.hpp"

using namespace dtrain::testing::cuda_runtime;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&](Machine& machine) {
    if (flags != cudaStreamNonBlocking) throw Refusal{cudaErrorInvalidValue, "a stream that the legacy stream blocks"};
    *stream = machine.queues.add(Machine::gpu());
  });
}

// What it was asked for is done all the same.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call("cudaStreamDestroy", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    stream.destroyed = true;
    if (stream.capture) throw Refusal{cudaSuccess, "a stream that is being recorded"};
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    if (stream.capture) invalidate(stream, cudaErrorStreamCaptureUnsupported);
    machine.queues.finish(stream);
  });
}

// "Not ready" stays the thread's last error. NVIDIA's guide says that it does not, programs saw that it does.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    if (stream.capture) invalidate(stream, cudaErrorStreamCaptureUnsupported);
    if (stream.queue.empty()) return;
    machine.queues.go_on_a_little(stream);
    throw Refusal{cudaErrorNotReady, {}};
  });
}

namespace dtrain::testing::cuda_runtime {

cudaError_t enqueue(cudaStream_t handle, const std::string& name, std::function<void()> work) {
  return call(name, [&](Machine& machine) {
    machine.submit(use(machine, handle), [name, work = std::move(work)](const CUstream_st&) {
      return Operation{.name = name, .turns = {work}};
    });
  });
}

}  // namespace dtrain::testing::cuda_runtime
