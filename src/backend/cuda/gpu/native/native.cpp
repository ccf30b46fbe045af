#include "native.hpp"

#include "folded_sums.hpp"
#include "products.hpp"

namespace dtrain::backend::cuda {
namespace {

struct Launch {
  cudaStream_t stream;
  template <typename Sums, typename Finish>
  std::optional<cudaError_t> operator()(const FoldedSums<Sums, Finish>& work) const {
    return launch_folded_sums(work, stream);
  }
  template <typename Product>
  std::optional<cudaError_t> operator()(const Tiled<Product>& work) const {
    return launch_products(work, stream);
  }
  template <typename Other>
  std::optional<cudaError_t> operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<cudaError_t> launch_native(const Work& work, cudaStream_t stream) {
  return std::visit(Launch{stream}, work);
}

}  // namespace dtrain::backend::cuda
