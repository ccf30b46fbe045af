// Where the bias of a convolution or dense layer is added.
#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/nn/networks.hpp>

#include "training_calls.hpp"

namespace dtrain::backend::cuda {
namespace {

auto passes_for_bias(const nn::Graph& graph) {
  return std::ranges::count_if(training_calls(graph, DType::bfloat16, 2),
                               [](const Call& call) { return call.work.holds<AddBias<Bf16>>(); });
}

TEST(CudaBias, IsAddedWithTheActivationBehindIt) {
  EXPECT_EQ(passes_for_bias(nn::build_network({.name = "speednet", .image = {3, 32, 32}})), 0);
}

// The loss reads the logits of a ResNet, and no activation.
TEST(CudaBias, HasAPassOfItsOwnWhereNoActivationFollows) {
  EXPECT_EQ(passes_for_bias(nn::build_network({.name = "resnet-v1", .num_layers = 8, .image = {3, 32, 32}})), 1);
}

}  // namespace
}  // namespace dtrain::backend::cuda
