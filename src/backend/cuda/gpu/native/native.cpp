#include "native.hpp"

#include "folded_sums.hpp"
#include "muon_products.hpp"
#include "norm_slabs.hpp"

namespace dtrain::backend::cuda {
namespace {

// None where the current GPU does not say, or cannot run the blocks of a launch at the same time.
ChipFacts current_chip() {
  int gpu = 0, processors = 0, bytes = 0, cooperates = 0;
  const bool known = cudaGetDevice(&gpu) == cudaSuccess &&
                     cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu) == cudaSuccess &&
                     cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu) == cudaSuccess &&
                     cudaDeviceGetAttribute(&cooperates, cudaDevAttrCooperativeLaunch, gpu) == cudaSuccess;
  if (!known) cudaGetLastError();
  return known && cooperates ? ChipFacts{processors, bytes} : ChipFacts{};
}

struct Launch {
  cudaStream_t stream;
  template <GoesBySlabs Norm>
  std::optional<cudaError_t> operator()(const Norm& norm) const {
    const ChipFacts chip = current_chip();
    const SlabPlan plan = slabs_of(norm, chip);
    if (!plan.worth_it()) return std::nullopt;
    return launch_norm_slabs(norm, plan, chip, stream);
  }
  template <typename Sums, typename Finish>
  std::optional<cudaError_t> operator()(const FoldedSums<Sums, Finish>& work) const {
    return launch_folded_sums(work, stream);
  }
  template <typename Product>
  std::optional<cudaError_t> operator()(const Tiled<Product>& work) const {
    return launch_muon_products(work, stream);
  }
  template <typename Other>
  std::optional<cudaError_t> operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<cudaError_t> launch_native(const Work& work, cudaStream_t stream) { return work.visit(Launch{stream}); }

}  // namespace dtrain::backend::cuda
