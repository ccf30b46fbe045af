// cuda*: GPUs, threads and errors.
#include <cstdio>
#include <utility>

#include "machine.hpp"

using namespace dtrain::testing::cuda_runtime;

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  return call("cudaGetDeviceProperties", [&](Machine& machine) {
    if (gpu < 0 || gpu >= kGpus) throw Refusal{cudaErrorInvalidDevice, {}};
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "a stand-in");
    properties->major = machine.settings.capability;
    properties->totalGlobalMem = machine.settings.memory;
  });
}

cudaError_t cudaSetDevice(int gpu) {
  return call("cudaSetDevice", [&](Machine&) {
    if (gpu < 0 || gpu >= kGpus) throw Refusal{cudaErrorInvalidDevice, "there is no such GPU"};
    Machine::gpu() = gpu;
  });
}

cudaError_t cudaGetLastError() { return std::exchange(Machine::last_error(), cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return Machine::last_error(); }
const char* cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "an error of the stand-in";
  }
}
