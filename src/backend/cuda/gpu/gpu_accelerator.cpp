#include <cuda_runtime.h>
#include <fmt/format.h>

#include <dtrain/backend/accelerator.hpp>
#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/error.hpp>

#include "gpu_error.hpp"
#include "reduction_kernels.hpp"

namespace dtrain::backend {
namespace cuda {
namespace {

class GpuAccelerator final : public Accelerator {
 public:
  explicit GpuAccelerator(int index) : index_(index) {
    use();
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "the start of a stream");
    check(cudaEventCreateWithFlags(&mark_, cudaEventDisableTiming), "the start of an event");
  }
  ~GpuAccelerator() override {
    cudaSetDevice(index_);
    cudaEventDestroy(mark_);
    cudaStreamDestroy(stream_);
  }

  std::byte* allocate(std::uint64_t bytes) override {
    use();
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(fmt::format("the GPU has no {} MiB of memory left to add gradients up", bytes >> 20),
                  "use a smaller setting 'batch-size', or setting 'transport' tcp");
    }
    check(error, "a reservation of memory for reductions");
    return static_cast<std::byte*>(memory);
  }
  // cudaFree waits for other queues, which may still read a sum.
  void release(std::byte* memory) noexcept override {
    cudaSetDevice(index_);
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  }

  // Memory that is not page-locked is copied before this returns; callers pass no other kind.
  void upload(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "a copy to the GPU");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "a copy from the GPU");
    check(cudaStreamSynchronize(stream_), "the work before a copy from the GPU");
  }

  void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) override {
    use();
    check(launch(SumOfTwo{out, left, right, size, rounded}, stream_), "a sum of gradients");
  }
  void copy(float* to, const float* from, std::int64_t size) override {
    use();
    const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "a copy of gradients");
  }
  void clear(float* to, std::int64_t size) override {
    use();
    const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
    check(cudaMemsetAsync(to, 0, bytes, stream_), "clearing gradients");
  }
  void narrow(bfloat16_bits* to, const float* from, std::int64_t size) override {
    use();
    check(launch(NarrowFloats{to, from, size}, stream_), "rounding gradients");
  }
  void widen(float* to, const bfloat16_bits* from, std::int64_t size) override {
    use();
    check(launch(WidenFloats{to, from, size}, stream_), "widening gradients");
  }

  void wait_for(DeviceMark mark) override {
    if (!mark.event) return;
    use();
    check(cudaStreamWaitEvent(stream_, static_cast<cudaEvent_t>(mark.event), 0), "the wait for gradients");
  }
  DeviceMark mark() override {
    use();
    check(cudaEventRecord(mark_, stream_), "a mark behind reductions");
    return {mark_};
  }

  void* stream() override {
    use();
    return stream_;
  }
  bool is_idle() override {
    use();
    return is_done(cudaStreamQuery(stream_), "a reduction");
  }
  bool is_reached(DeviceMark mark) override {
    if (!mark.event) return true;
    use();
    return is_done(cudaEventQuery(static_cast<cudaEvent_t>(mark.event)), "the gradients of a step");
  }

 private:
  static bool is_done(cudaError_t state, const char* what) {
    if (state == cudaErrorNotReady) {
      cudaGetLastError();  // or the next launch of this thread would take it for its own
      return false;
    }
    check(state, what);
    return true;
  }

  // The caller's thread may be another one than before.
  void use() const { check(cudaSetDevice(index_), "the choice of the GPU"); }

  const int index_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t mark_ = nullptr;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Accelerator> open_accelerator(int index) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || index < 0 || index >= count) {
    throw UsageError(fmt::format("GPU {} is not there, or its driver does not answer", index),
                     "`dtrain doctor` says which GPUs there are");
  }
  return std::make_unique<cuda::GpuAccelerator>(index);
}

}  // namespace dtrain::backend
