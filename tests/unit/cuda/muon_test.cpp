// The rule muon on a GPU that is this CPU: the numbers of the CPU's own, and what rounding to two bytes makes of them.
#include "muon.hpp"

#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

#include "common/matrix_problem.hpp"
#include "common/replay_device.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;
using backend::cuda::make_replay_backend;

nn::Graph small_speednet() { return nn::build_network({.name = "speednet", .image = {3, 32, 32}, .width = 16}); }

double step_error(const nn::Graph& graph, DType dtype) {
  return muon_step_error(*make_replay_backend(), *backend::make_cpu_backend(), graph, dtype);
}

TEST(CudaMuon, StepsAsTheCpuDoesButForTheRoundingOfTheType) {
  for (const nn::Graph& graph : {small_speednet(), matrix_problem().graph}) {
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      EXPECT_LT(step_error(graph, dtype), allowed_muon_error(dtype)) << graph.name << " in " << dtype_name(dtype);
    }
  }
}

std::size_t count_of_products(const nn::Graph& graph) {
  const auto device = backend::cuda::make_replay_device();
  const backend::cuda::Muon muon(*device, {graph, DType::bfloat16});
  std::vector<backend::cuda::Call> calls;
  muon.add_calls(nullptr, nullptr, 1, calls);
  std::size_t products = 0;
  for (const backend::cuda::Call& call : calls) {
    const auto* const product = std::get_if<backend::cuda::Convolution>(&call.work);
    if (!product) continue;
    EXPECT_FALSE(product->any_order) << call.name;  // ranks must agree on the weights
    ++products;
  }
  return products;
}

TEST(CudaMuon, CallsALibraryForEachLargeMatrixAndForNoneOfTheManySmallOnes) {
  EXPECT_EQ(count_of_products(nn::build_network({.name = "speednet", .image = {3, 32, 32}})), 3u * 6);
  const nn::Graph mobilenet = nn::build_network({.name = "mobilenet", .image = {3, 64, 64}});
  EXPECT_GT(nn::weight_matrices(mobilenet).size(), 1000u);  // a channel's filter is a matrix of its own
  EXPECT_LT(count_of_products(mobilenet), 3u * 14);
}

}  // namespace
}  // namespace dtrain::testing
