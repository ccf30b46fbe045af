// Every instruction set's kernels give the same bits as the plain ones.
#include "kernels/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "rows.hpp"

namespace dtrain::backend::cpu {
namespace {

std::vector<float> numbers(std::size_t count, std::uint32_t stream) {
  RandomStream random(1, RandomUse::drawing, stream, 0);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(-2, 2);
  return values;
}

// Channels 5 and 16, pixels that leave a tail.
struct Case {
  int channels;
  std::int64_t pixels;
};

class KernelBits : public ::testing::TestWithParam<Case> {
 protected:
  Rows rows() const { return rows_of(GetParam().pixels, GetParam().channels); }
  std::size_t size() const { return static_cast<std::size_t>(GetParam().pixels * GetParam().channels); }
  std::size_t width() const { return static_cast<std::size_t>(rows().width); }
};

INSTANTIATE_TEST_SUITE_P(Shapes, KernelBits, ::testing::Values(Case{16, 301}, Case{5, 77}, Case{3, 9}, Case{200, 33}));

const Kernels& best() { return select_kernels(); }

TEST_P(KernelBits, OfMomentsAreThoseOfThePlainKernels) {
  const auto x = numbers(size(), 1), shift = numbers(width(), 2);
  std::vector<double> sum(width()), square(width()), plain_sum(width()), plain_square(width());
  best().float32.moments(x.data(), rows(), shift.data(), sum.data(), square.data());
  generic::kKernels.float32.moments(x.data(), rows(), shift.data(), plain_sum.data(), plain_square.data());
  EXPECT_EQ(sum, plain_sum);
  EXPECT_EQ(square, plain_square);
}

TEST_P(KernelBits, OfNormalisingAreThoseOfThePlainKernels) {
  const auto x = numbers(size(), 1), residual = numbers(size(), 2), scale = numbers(width(), 3),
             shift = numbers(width(), 4);
  std::vector<float> out(size()), plain(size());
  best().float32.normalise(x.data(), residual.data(), out.data(), rows(), scale.data(), shift.data(), true);
  generic::kKernels.float32.normalise(x.data(), residual.data(), plain.data(), rows(), scale.data(), shift.data(),
                                      true);
  EXPECT_EQ(out, plain);
}

TEST_P(KernelBits, OfCurvesAreThoseOfThePlainKernelsAndNearLibm) {
  const auto x = numbers(size(), 1);
  std::vector<float> out(size()), plain(size());
  for (const Curve curve : {Curve::tanh, Curve::sigmoid}) {
    best().float32.activate(curve, x.data(), out.data(), static_cast<std::int64_t>(size()));
    generic::kKernels.float32.activate(curve, x.data(), plain.data(), static_cast<std::int64_t>(size()));
    EXPECT_EQ(out, plain);
    for (std::size_t k = 0; k < size(); ++k) {
      EXPECT_NEAR(out[k], curve == Curve::tanh ? std::tanh(x[k]) : 1 / (1 + std::exp(-x[k])), 3e-7);
    }
  }
}

TEST_P(KernelBits, OfFactorsOfColumnsAndTheirGradientAreThoseOfThePlainKernels) {
  const auto x = numbers(size(), 1), dy = numbers(size(), 2), factors = numbers(width(), 3);
  std::vector<float> out(size()), plain(size());
  std::vector<double> sum(width()), plain_sum(width());
  best().float32.scale_columns(x.data(), factors.data(), out.data(), rows());
  generic::kKernels.float32.scale_columns(x.data(), factors.data(), plain.data(), rows());
  best().float32.column_products(x.data(), dy.data(), rows(), sum.data());
  generic::kKernels.float32.column_products(x.data(), dy.data(), rows(), plain_sum.data());
  EXPECT_EQ(out, plain);
  EXPECT_EQ(sum, plain_sum);
  for (std::size_t k = 0; k < size(); ++k) EXPECT_EQ(out[k], x[k] * factors[k % width()]);
}

TEST_P(KernelBits, OfLayerNormAndItsGradientAreThoseOfThePlainKernels) {
  const int channels = GetParam().channels;
  const std::size_t c = static_cast<std::size_t>(channels), pixels = static_cast<std::size_t>(GetParam().pixels);
  const auto x = numbers(size(), 1), dy = numbers(size(), 2), gamma = numbers(c, 3), beta = numbers(c, 4);
  const LayerNormRows shape{GetParam().pixels, channels, 1e-6f, gamma.data(), beta.data()};
  const auto compute = [&](const Kernels& kernels, std::vector<float>& values, std::vector<double>& sums) {
    values.resize(2 * size() + 2 * pixels);
    sums.resize(2 * c);
    std::vector<float> scratch(2 * c);
    float *const y = values.data(), *const dx = y + size(), *const moments = dx + size();
    kernels.float32.layer_norm(x.data(), y, moments, shape);
    kernels.float32.layer_norm_backward(x.data(), dy.data(), moments, dx, sums.data(), scratch.data(), shape);
  };
  std::vector<float> values, plain;
  std::vector<double> sums, plain_sums;
  compute(best(), values, sums);
  compute(generic::kKernels, plain, plain_sums);
  EXPECT_EQ(values, plain);
  EXPECT_EQ(sums, plain_sums);
}

TEST_P(KernelBits, OfPointsBetweenPixelsAreThoseOfThePlainKernels) {
  const int channels = GetParam().channels;
  const std::vector<Tap> taps = {{2, 0.25f}, {0, 0.5f}, {2, -1.5f}, {static_cast<int>(GetParam().pixels) - 1, 0.125f}};
  const auto count = static_cast<int>(taps.size());
  const std::vector<float> x = numbers(size(), 1);
  std::vector<bfloat16_bits> narrow(size());
  for (std::size_t i = 0; i < size(); ++i) narrow[i] = to_bfloat16(x[i]);
  std::vector<float> out(static_cast<std::size_t>(channels)), plain(out);
  best().bfloat16.gather(narrow.data(), channels, taps.data(), count, out.data());
  generic::kKernels.bfloat16.gather(narrow.data(), channels, taps.data(), count, plain.data());
  EXPECT_EQ(out, plain);
  best().float32.gather(x.data(), channels, taps.data(), count, out.data());
  generic::kKernels.float32.gather(x.data(), channels, taps.data(), count, plain.data());
  EXPECT_EQ(out, plain);
  for (int c = 0; c < channels; ++c) {
    float sum = 0;
    for (const Tap& tap : taps) sum += tap.weight * x[static_cast<std::size_t>(std::int64_t{tap.pixel} * channels + c)];
    EXPECT_EQ(out[static_cast<std::size_t>(c)], sum);
  }
  std::vector<float> sums = numbers(size(), 2), plain_sums = sums;
  best().scatter(out.data(), channels, taps.data(), count, sums.data());
  generic::kKernels.scatter(out.data(), channels, taps.data(), count, plain_sums.data());
  EXPECT_EQ(sums, plain_sums);
  EXPECT_NE(sums, numbers(size(), 2));
}

TEST_P(KernelBits, OfSoftmaxAreThoseOfThePlainKernelsAndNearLibm) {
  const int columns = GetParam().channels;
  const auto scores = numbers(size(), 1), dy = numbers(size(), 2);
  const auto compute = [&](const Kernels& kernels) {
    std::vector<float> shares = scores, gradient = dy;
    kernels.softmax_rows(shares.data(), GetParam().pixels, columns, 3);
    kernels.softmax_rows_backward(shares.data(), gradient.data(), GetParam().pixels, columns, 3);
    shares.insert(shares.end(), gradient.begin(), gradient.end());
    return shares;
  };
  const std::vector<float> found = compute(best());
  EXPECT_EQ(found, compute(generic::kKernels));
  double sum = 0;
  for (int k = 0; k < columns; ++k) sum += std::exp(3.0 * scores[static_cast<std::size_t>(k)]);
  for (int k = 0; k < columns; ++k) {
    const auto at = static_cast<std::size_t>(k);
    EXPECT_NEAR(found[at], std::exp(3.0 * scores[at]) / sum, 1e-6);
  }
}

// From -8 to 8 in steps that no vector length divides.
TEST(Kernels, CurvesWithASlopeByTheInputAreNearLibmAndHaveThePlainBits) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto hard = [](double v) { return std::clamp((v + 3) / 6, 0.0, 1.0); };
  std::vector<float> x;
  for (int k = 0; k < 1603; ++k) x.push_back(0.01f * static_cast<float>(k) - 8.003f);
  const std::vector<float> ones(x.size(), 1.0f);
  const auto count = static_cast<std::int64_t>(x.size());
  for (const Curve curve : {Curve::silu, Curve::hard_swish, Curve::hard_sigmoid}) {
    std::vector<float> out(x.size()), plain(x.size()), slope(x.size()), plain_slope(x.size());
    best().float32.activate(curve, x.data(), out.data(), count);
    generic::kKernels.float32.activate(curve, x.data(), plain.data(), count);
    best().float32.activate_backward(curve, ones.data(), x.data(), slope.data(), count);
    generic::kKernels.float32.activate_backward(curve, ones.data(), x.data(), plain_slope.data(), count);
    EXPECT_EQ(out, plain);
    EXPECT_EQ(slope, plain_slope);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double v = x[k], s = sigmoid(v), inside = std::abs(v) < 3 ? 1 : 0;
      const double value = curve == Curve::silu ? v * s : curve == Curve::hard_swish ? v * hard(v) : hard(v);
      const double rise = curve == Curve::silu         ? s * (1 + v * (1 - s))
                          : curve == Curve::hard_swish ? hard(v) + v * inside / 6
                                                       : inside / 6;
      EXPECT_NEAR(out[k], value, 3e-7 * (1 + std::abs(v))) << v;
      EXPECT_NEAR(slope[k], rise, 6e-7) << v;
    }
  }
}

// From -8 to 8 in steps that no vector length divides: both tails, and where they join the middle.
TEST(Kernels, GeluAndItsSlopeAreNearLibmAndHaveThePlainBits) {
  std::vector<float> x, ones;
  for (int k = 0; k < 1601; ++k) x.push_back(0.01f * static_cast<float>(k) - 8);
  ones.assign(x.size(), 1.0f);
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<float> out(x.size()), plain(x.size()), slope(x.size()), plain_slope(x.size());
  best().float32.activate(Curve::gelu, x.data(), out.data(), count);
  generic::kKernels.float32.activate(Curve::gelu, x.data(), plain.data(), count);
  best().float32.activate_backward(Curve::gelu, ones.data(), x.data(), slope.data(), count);
  generic::kKernels.float32.activate_backward(Curve::gelu, ones.data(), x.data(), plain_slope.data(), count);
  EXPECT_EQ(out, plain);
  EXPECT_EQ(slope, plain_slope);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double v = x[k], share = std::erfc(-v / std::sqrt(2.0)) / 2;
    EXPECT_NEAR(out[k], v * share, 2e-7 * (1 + std::abs(v))) << v;
    EXPECT_NEAR(slope[k], share + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI), 2e-7) << v;
  }
}

TEST(Kernels, CurvesReachTheirEndsAndKeepNan) {
  const float x[] = {-1e30f, -100, -88, 0, 88, 100, 1e30f, NAN};
  const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
  float tanh[8], sigmoid[8], gelu[8], gelu_slope[8];
  best().float32.activate(Curve::tanh, x, tanh, 8);
  best().float32.activate(Curve::sigmoid, x, sigmoid, 8);
  best().float32.activate(Curve::gelu, x, gelu, 8);
  best().float32.activate_backward(Curve::gelu, ones, x, gelu_slope, 8);
  EXPECT_EQ(std::vector<float>(tanh, tanh + 7), (std::vector<float>{-1, -1, -1, 0, 1, 1, 1}));
  EXPECT_EQ(std::vector<float>(sigmoid, sigmoid + 7), (std::vector<float>{0, 0, 0, 0.5f, 1, 1, 1}));
  EXPECT_EQ(std::vector<float>(gelu, gelu + 7), (std::vector<float>{0, 0, 0, 0, 88, 100, 1e30f}));
  EXPECT_EQ(std::vector<float>(gelu_slope, gelu_slope + 7), (std::vector<float>{0, 0, 0, 0.5f, 1, 1, 1}));
  EXPECT_TRUE(std::isnan(tanh[7]) && std::isnan(sigmoid[7]) && std::isnan(gelu[7]) && std::isnan(gelu_slope[7]));
}

TEST(Kernels, RoundToBfloat16AsTheBaseLibraryDoes) {
  std::vector<float> x = numbers(1000, 7);
  x[3] = NAN;
  x[5] = INFINITY;
  x[7] = 1e-42f;
  std::vector<bfloat16_bits> out(x.size());
  best().bfloat16.from_float(x.data(), out.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t k = 0; k < x.size(); ++k) EXPECT_EQ(out[k], to_bfloat16(x[k])) << x[k];
}

}  // namespace
}  // namespace dtrain::backend::cpu
