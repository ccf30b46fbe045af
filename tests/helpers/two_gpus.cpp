// A machine with two GPUs, each of them this CPU behind the seam of src/backend/cuda: stands in for cuda/gpu when it is
// linked before it. What it shows is who computes on which GPU; nothing of a GPU is shown.
#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include <dtrain/backend/accelerator.hpp>
#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/error.hpp>

#include "common/replay_accelerator.hpp"
#include "common/replay_device.hpp"

namespace dtrain::backend {

CudaReport look_for_cuda() {
  CudaReport report;
  report.built = true;
  report.driver = "13.0";
  report.libraries = {{.name = "NCCL", .file = DTRAIN_NCCL_STANDIN, .version = "2.28.0"}};
  for (int index = 0; index < 2; ++index) report.gpus.push_back({.index = index, .name = "a replay"});
  return report;
}

std::unique_ptr<Backend> make_cuda_backend(int index, const CudaOptions& options) {
  if (index < 0 || index > 1) throw UsageError(fmt::format("GPU {} is not there", index));
  fmt::print(stderr, "took GPU {}{}\n", index, options.deterministic ? "" : ", not deterministic");
  return options.deterministic ? cuda::make_large_replay_backend() : cuda::make_wavering_replay_backend();
}

std::unique_ptr<Accelerator> open_accelerator(int index) {
  fmt::print(stderr, "reduces on GPU {}\n", index);
  // Said once a worker; tests/cli/gpus.sh looks for it.
  return cuda::make_replay_accelerator({.on_host_copy = [said = false]() mutable {
    if (!std::exchange(said, true)) fmt::print(stderr, "gradients pass through the host\n");
  }});
}

}  // namespace dtrain::backend
