// The weights' gradient of products over tokens, beside the reference.
#include "products/matrix_gradient.hpp"

#include <gtest/gtest.h>

#include "common/layer_cases.hpp"
#include "common/trace.hpp"

namespace dtrain::backend::cpu {
namespace {

struct TokensCase {
  int tokens, first, second;
};

class MatrixGradients : public ::testing::TestWithParam<TokensCase> {};

// Fewer pixels than a block takes and more, rows and columns that fill panels and that do not.
INSTANTIATE_TEST_SUITE_P(Shapes, MatrixGradients,
                         ::testing::Values(TokensCase{7, 16, 24}, TokensCase{61, 80, 5}, TokensCase{30, 128, 49}));

testing::Problem network(const TokensCase& c) {
  nn::GraphBuilder b("tokens", {3, 1, c.tokens});
  int x = b.add("first", nn::Convolution{.out = c.first, .bias = true}, {b.input()});
  x = b.add("second", nn::Convolution{.out = c.second, .bias = true}, {x});
  x = b.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  return testing::make_problem(b.finish(b.add("logits", nn::Dense{.out = 7}, {x})), testing::kSamples);
}

TEST_P(MatrixGradients, AgreeWithTheReference) {
  for (const int threads : {1, 2}) {
    testing::TraceOptions options;
    options.threads_per_lane = threads;
    EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options), "");
  }
}

TEST(MatrixGradientLayers, AreThoseOfTokensInFloat32) {
  const CpuModel cpu{.has_avx512 = true};
  Product p;
  p.in = p.out = {64, 1, 9};
  p.convolution = {.out = 64};
  EXPECT_TRUE(has_matrix_gradient(p, cpu));
  EXPECT_FALSE(has_matrix_gradient(p, {})) << "a chip without fused multiply-adds";
  p.in.c = 20;
  EXPECT_FALSE(has_matrix_gradient(p, cpu)) << "channels that fill no vector";
  p.in = p.out = {64, 3, 3};
  EXPECT_FALSE(has_matrix_gradient(p, cpu)) << "a picture";
  p.in = p.out = {64, 1, 9};
  p.dtype = DType::bfloat16;
  EXPECT_FALSE(has_matrix_gradient(p, cpu));
}

}  // namespace
}  // namespace dtrain::backend::cpu
