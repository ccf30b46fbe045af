// The weights' gradient of a large dense layer, beside the reference.
#include "products/dense_gradient.hpp"

#include <gtest/gtest.h>

#include "common/layer_cases.hpp"
#include "common/trace.hpp"

namespace dtrain::backend::cpu {
namespace {

// A picture and a vector before a large layer, whose rows fill the last block and do not. 300 samples pass in two
// chunks.
struct DenseCase {
  int pixels, channels, rows, samples;
};

class DenseGradients : public ::testing::TestWithParam<DenseCase> {};

INSTANTIATE_TEST_SUITE_P(Shapes, DenseGradients,
                         ::testing::Values(DenseCase{8, 64, 257, 5}, DenseCase{1, 4096, 264, 5},
                                           DenseCase{16, 256, 16, 20}));

testing::Problem network(const DenseCase& c) {
  nn::GraphBuilder b("dense", {3, c.pixels, c.pixels});
  int x = b.add("convolution", nn::Convolution{.out = c.channels, .bias = true}, {b.input()});
  x = b.add("large", nn::Dense{.out = c.rows}, {x});
  return testing::make_problem(b.finish(b.add("logits", nn::Dense{.out = 7}, {x})), c.samples);
}

TEST_P(DenseGradients, AgreeWithTheReference) {
  for (const int threads : {1, 2}) {
    testing::TraceOptions options;
    options.threads_per_lane = threads;
    EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options), "");
  }
}

// The numbers between the layers are rounded, so the comparison is as coarse as theirs.
TEST_P(DenseGradients, ComeNearTheReferenceInBfloat16) {
  if (make_cpu_backend()->why_not(DType::bfloat16)) GTEST_SKIP() << "this CPU lacks bfloat16";
  testing::TraceOptions options;
  options.dtype = DType::bfloat16;
  const testing::Tolerance rounded{
      .loss = 0.02, .gradients = 0.05, .statistics = 0.05, .logits = 0.05, .parameters = 0.05};
  EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options, rounded),
            "");
}

TEST(DenseGradientLayers, AreTheLargeOnes) {
  const CpuModel cpu{.has_avx512 = true};
  Product p;
  p.dense = true;
  p.in = {512, 7, 7};
  p.out = {4096, 1, 1};
  EXPECT_TRUE(has_dense_gradient(p, cpu));
  EXPECT_FALSE(has_dense_gradient(p, {})) << "a chip without fused multiply-adds";
  p.dtype = DType::bfloat16;
  EXPECT_TRUE(has_dense_gradient(p, cpu));
  p.in = {511, 7, 7};
  EXPECT_FALSE(has_dense_gradient(p, cpu)) << "inputs that fill no panel";
  p.in = {512, 1, 1};
  p.out.c = 1000;
  EXPECT_FALSE(has_dense_gradient(p, cpu)) << "half a million weights";
  p.out.c = 4096;
  p.dense = false;
  EXPECT_FALSE(has_dense_gradient(p, cpu)) << "a convolution";
}

}  // namespace
}  // namespace dtrain::backend::cpu
