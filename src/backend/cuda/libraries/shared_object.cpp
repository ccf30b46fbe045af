#include "shared_object.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace dtrain::backend::cuda {
namespace {

// The major version of CUDA that dtrain is built with; a library made for another one is not mixed with it.
constexpr int kCuda = 13;

// cuDNN before 9 counted 1000 to a major version, since 9 it counts 10000.
Version cudnn_version(std::size_t number) {
  const std::size_t unit = number >= 90000 ? 10000 : 1000;
  return {static_cast<int>(number / unit), static_cast<int>(number % unit / 100), static_cast<int>(number % 100)};
}

Version nccl_version(int number) { return {number / 10000, number % 10000 / 100, number % 100}; }

}  // namespace

SharedObject::SharedObject(const Path& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* const why = dlerror();
  problem_ = fmt::format("cannot be loaded: {}", why ? why : "no reason given");
}

void* SharedObject::address(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

Probe probe_cudnn(const Path& file) {
  const SharedObject library(file);
  if (!library) return {{}, library.problem()};
  auto* const version = library.symbol<std::size_t()>("cudnnGetVersion");
  if (!version) return {{}, "has no cudnnGetVersion: it is not cuDNN"};
  Probe probe{cudnn_version(version()), {}};
  // The parts that it loads must be of its own version; where they are not, it says so here and not in the first step.
  for (const char* check : {"cudnnGraphVersionCheck", "cudnnOpsVersionCheck", "cudnnCnnVersionCheck"}) {
    auto* const matches = library.symbol<int()>(check);
    if (matches && matches() != 0) {
      probe.problem =
          fmt::format("is version {}, but the parts beside it are of another one ({})", probe.version->text(), check);
      return probe;
    }
  }
  auto* const runtime = library.symbol<std::size_t()>("cudnnGetCudartVersion");
  if (runtime && static_cast<int>(runtime() / 1000) != kCuda) {
    probe.problem = fmt::format("is made for CUDA {}, this dtrain for CUDA {}", runtime() / 1000, kCuda);
  }
  return probe;
}

Probe probe_nccl(const Path& file) {
  const SharedObject library(file);
  if (!library) return {{}, library.problem()};
  auto* const version = library.symbol<int(int*)>("ncclGetVersion");
  int number = 0;
  if (!version || version(&number) != 0) return {{}, "has no ncclGetVersion: it is not NCCL"};
  return {nccl_version(number), {}};
}

LibraryWanted cudnn_wanted() {
  return {.name = "cuDNN",
          .file = "libcudnn.so.9",
          .wheel = "cudnn",
          .at_least = {9, 0, 0},
          .hint =
              "install cuDNN 9 for CUDA 13 (package cudnn9-cuda-13, or pip's nvidia-cudnn-cu13), and name its "
              "folder in DTRAIN_CUDA_PATH where it is not in the loader's path"};
}

LibraryWanted nccl_wanted() {
  return {.name = "NCCL",
          .file = "libnccl.so.2",
          .wheel = "nccl",
          .at_least = {2, 18, 0},
          .hint =
              "install NCCL 2 (package libnccl2, or pip's nvidia-nccl-cu13), and name its folder in "
              "DTRAIN_CUDA_PATH where it is not in the loader's path"};
}

}  // namespace dtrain::backend::cuda
