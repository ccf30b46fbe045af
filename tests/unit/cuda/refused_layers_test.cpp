// Layers that the cuda backend does not compute: it names them before anything is opened on a GPU.
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/replay_device.hpp"

namespace dtrain::testing {
namespace {

using backend::cuda::make_replay_backend;

void compile(const nn::Layer& layer) {
  nn::GraphBuilder b("net", {3, 8, 8});
  const int first = b.add("first", nn::Convolution{.out = 4, .kernel_h = 3, .kernel_w = 3}, {b.input()});
  const nn::Graph graph = b.finish(b.add("logits", nn::Dense{.out = 2}, {b.add("suspect", layer, {first})}));
  make_replay_backend()->compile(graph, {.max_samples = 1});
}

void expect_refusal(const nn::Layer& layer, const std::string& what) {
  try {
    compile(layer);
    ADD_FAILURE() << "was compiled: " << what;
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), what);
    EXPECT_EQ(error.hint(), "use setting 'device' cpu");
  }
}

TEST(CudaRefusals, NameALocalResponseNorm) {
  expect_refusal(nn::LocalResponseNorm{}, "the cuda backend has no local response norm, which 'suspect' is");
}

TEST(CudaRefusals, NameAConvolutionWhoseSidesArePaddedUnevenly) {
  const std::string what = "the cuda backend pads as much below and right as above and left, 'suspect' differs by ";
  nn::Convolution layer{.out = 4, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1};
  EXPECT_NO_THROW(compile(layer));
  layer.extra_w = 1;
  expect_refusal(layer, what + "0 and 1");
  layer.extra_h = -1;
  expect_refusal(layer, what + "-1 and 1");
}

}  // namespace
}  // namespace dtrain::testing
