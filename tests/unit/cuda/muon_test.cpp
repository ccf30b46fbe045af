// The rule muon on a GPU that is this CPU: the numbers of the CPU's own, and what rounding to two bytes makes of them.
#include "update/muon.hpp"

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

using backend::cuda::Call;
using backend::cuda::MuonCost;
using backend::cuda::MuonLayout;

std::vector<Call> calls_of(const nn::Graph& graph, int iterations) {
  const auto device = backend::cuda::make_replay_device();
  const backend::cuda::Muon muon(*device, {graph, DType::bfloat16});
  std::vector<Call> calls;
  muon.add_calls(nullptr, nullptr, iterations, calls);
  return calls;
}

// However many matrices of however many shapes there are.
TEST(CudaMuon, ComputesEachProductOfAllMatricesAtOnce) {
  for (const char* const name : {"speednet", "mobilenet"}) {
    const nn::Graph graph = nn::build_network({.name = name, .image = {3, 32, 32}});
    EXPECT_EQ(calls_of(graph, 4).size() - calls_of(graph, 3).size(), 3u) << name;
    EXPECT_EQ(calls_of(graph, 0).size(), 5u) << name;
  }
}

TEST(CudaMuon, AThreadAddsFewNumbersInARow) {
  const MuonLayout layout(nn::build_network({.name = "speednet", .image = {3, 32, 32}}), DType::bfloat16);
  ASSERT_EQ(layout.matrices.size(), 6u);
  EXPECT_EQ(layout.matrices.back().size(), 256 * 2304);
  for (const auto& m : layout.matrices) {
    EXPECT_EQ(m.parts, (m.size() + 127) / 128);
    EXPECT_LE(m.folds, 72);
  }
}

// What is multiplied in vain: rows and columns of tiles that stand out of a matrix, against padding to one shape.
TEST(CudaMuon, MultipliesLittleInVain) {
  const auto cost = [](const nn::NetworkOptions& network) {
    return backend::cuda::cost_of({nn::build_network(network), DType::bfloat16});
  };
  const MuonCost speednet = cost({.name = "speednet", .image = {3, 32, 32}});
  EXPECT_NEAR(speednet.in_tiles / speednet.needed, 1.001, 0.001);
  EXPECT_NEAR(speednet.in_one_stack / speednet.needed, 1.81, 0.01);
  const MuonCost resnet = cost({.name = "resnet-v1", .num_layers = 50, .image = {3, 224, 224}, .classes = 1000});
  EXPECT_LT(resnet.in_tiles / resnet.needed, 1.01);
  EXPECT_GT(resnet.in_one_stack / resnet.needed, 5);
}

}  // namespace
}  // namespace dtrain::testing
