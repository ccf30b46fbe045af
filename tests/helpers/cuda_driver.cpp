// Stands in for libcuda.so.1 where there is no driver: cuDNN lists the engines that it compiles at run time, and makes
// plans of them, only beside a driver library with all of its functions. Kernels are taken and never run. What is not
// here answers as NVIDIA's own stub does (see tests/CMakeLists.txt), so that no GPU is ever found by it.
#include <cuda.h>

#include <cstddef>

namespace {

// What stands for a library, a module, a kernel and a function: never looked into.
int thing;
template <typename Handle>
CUresult give(Handle* handle) {
  *handle = reinterpret_cast<Handle>(&thing);
  return CUDA_SUCCESS;
}
template <typename Number>
CUresult say(Number* to, Number number) {
  *to = number;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGetErrorString(CUresult, const char** text) { return say(text, "an answer of the stand-in"); }
CUresult cuGetErrorName(CUresult, const char** text) { return say(text, "STAND_IN"); }

CUresult cuLibraryLoadData(CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                           unsigned) {
  return give(library);
}
CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary, const char*) { return give(kernel); }
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary) { return give(module); }
CUresult cuKernelGetFunction(CUfunction* function, CUkernel) { return give(function); }
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute, CUkernel, CUdevice) { return say(value, 0); }
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }

CUresult cuModuleLoadData(CUmodule* module, const void*) { return give(module); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned, CUjit_option*, void**) { return give(module); }
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) { return give(function); }

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) { return say(value, 0); }
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, std::size_t) {
  return say(blocks, 1);
}

}  // extern "C"
