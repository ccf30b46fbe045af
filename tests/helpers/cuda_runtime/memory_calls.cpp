// cuda*: memory. A release waits for nothing: NVIDIA's waits in practice, and promises it nowhere.
#include "machine.hpp"

using namespace dtrain::testing::cuda_runtime;

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&](Machine& machine) {
    *total = machine.settings.memory;
    *free = *total - machine.memory.used(Machine::gpu());
  });
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call("cudaMalloc", [&](Machine& machine) {
    machine.refuse_in_capture();
    *memory = machine.memory.reserve(Kind::gpu, Machine::gpu(), bytes, machine.settings.memory);
    if (!*memory) throw Refusal{cudaErrorMemoryAllocation, {}};
  });
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](Machine& machine) {
    machine.refuse_in_capture();
    *memory = machine.memory.reserve(Kind::page_locked, Machine::gpu(), bytes, bytes);
  });
}

cudaError_t cudaFree(void* memory) {
  return call("cudaFree", [&](Machine& machine) {
    machine.refuse_in_capture();
    if (memory) machine.memory.release(memory, Kind::gpu);
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return call("cudaFreeHost", [&](Machine& machine) {
    machine.refuse_in_capture();
    if (memory) machine.memory.release(memory, Kind::page_locked);
  });
}
