// The weights' gradient of products over tokens, regions and pixels, beside the reference.
#include "products/matrix_gradient.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "common/layer_cases.hpp"
#include "common/trace.hpp"

namespace dtrain::backend::cpu {
namespace {

struct TokensCase {
  int tokens, first, second;
  bool is_column = false;   // as a detector has its regions
  int stride = 1, pad = 0;  // of the second layer, along the tokens
};

class MatrixGradients : public ::testing::TestWithParam<TokensCase> {};

// Fewer pixels than a block takes and more, rows and columns that fill panels and that do not; more columns than the
// second cache holds together. Strides and padding that keep the number of tokens.
INSTANTIATE_TEST_SUITE_P(Shapes, MatrixGradients,
                         ::testing::Values(TokensCase{7, 16, 24}, TokensCase{61, 80, 5}, TokensCase{30, 128, 49},
                                           TokensCase{61, 80, 5, true}, TokensCase{9, 1056, 33, true},
                                           TokensCase{1, 32, 20, false, 2}, TokensCase{1, 64, 64, true, 2},
                                           TokensCase{3, 32, 20, false, 2, 1}, TokensCase{3, 32, 20, true, 2, 1},
                                           TokensCase{1, 32, 20, false, 3, 1}));

nn::Convolution along_tokens(const TokensCase& c) {
  nn::Convolution convolution{.out = c.second, .bias = true};
  (c.is_column ? convolution.stride_h : convolution.stride_w) = c.stride;
  (c.is_column ? convolution.pad_h : convolution.pad_w) = c.pad;
  return convolution;
}

testing::Problem network(const TokensCase& c) {
  nn::GraphBuilder b("tokens", c.is_column ? nn::Shape{3, c.tokens, 1} : nn::Shape{3, 1, c.tokens});
  int x = b.add("first", nn::Convolution{.out = c.first, .bias = true}, {b.input()});
  x = b.add("second", along_tokens(c), {x});
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

// Pictures of many channels: all pixels, and every other one of odd and even sides.
TEST(MatrixGradientPictures, AgreeWithTheReference) {
  for (const int stride : {1, 2}) {
    nn::GraphBuilder b("pictures", {3, 5, 4});
    int x = b.add("first", nn::Convolution{.out = 512, .bias = true}, {b.input()});
    x = b.add("second", nn::Convolution{.out = 520, .stride_h = stride, .stride_w = stride}, {x});
    x = b.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
    const testing::Problem problem =
        testing::make_problem(b.finish(b.add("logits", nn::Dense{.out = 7}, {x})), testing::kSamples);
    EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), problem, {}), "") << stride;
  }
}

TEST(MatrixGradientLayers, AreThoseOfTokensRegionsAndManyChannelsInFloat32) {
  const CpuModel cpu{.has_avx512 = true};
  Product p;
  p.in = p.out = {64, 1, 9};
  p.convolution = {.out = 64};
  EXPECT_TRUE(has_matrix_gradient(p, cpu));
  EXPECT_FALSE(has_matrix_gradient(p, {})) << "a chip without fused multiply-adds";
  p.in.c = 20;
  EXPECT_FALSE(has_matrix_gradient(p, cpu)) << "channels that fill no vector";
  p.in = p.out = {64, 9, 1};
  EXPECT_TRUE(has_matrix_gradient(p, cpu)) << "regions";
  p.in = p.out = {64, 3, 3};
  EXPECT_FALSE(has_matrix_gradient(p, cpu)) << "a picture of few channels";
  p.in = {512, 3, 3};
  p.out = {512, 3, 3};
  EXPECT_TRUE(has_matrix_gradient(p, cpu)) << "a picture of many channels";
  EXPECT_FALSE(has_matrix_gradient(p, {.has_avx2_fma = true})) << "not measured";
  p.in = p.out = {64, 1, 9};
  p.dtype = DType::bfloat16;
  EXPECT_FALSE(has_matrix_gradient(p, cpu));
  p.widened = true;
  EXPECT_TRUE(has_matrix_gradient(p, cpu));
}

TEST(MatrixGradientLayers, HaveNeitherStrideNorPadding) {
  const CpuModel cpu{.has_avx512 = true};
  Product p;
  p.in = p.out = {64, 1, 3};
  for (const auto& [stride, pad] : {std::pair{2, 1}, {2, 0}, {1, 1}}) {
    p.convolution = {.out = 64, .stride_w = stride, .pad_w = pad};
    EXPECT_FALSE(has_matrix_gradient(p, cpu)) << stride << ' ' << pad;
    p.convolution = {.out = 64, .stride_h = stride, .pad_h = pad};
    EXPECT_FALSE(has_matrix_gradient(p, cpu)) << stride << ' ' << pad;
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu
