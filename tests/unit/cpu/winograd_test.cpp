// Convolutions of 3x3 by minimal filtering, beside their definition.
#include "products/winograd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "buffer.hpp"
#include "common/layer_cases.hpp"
#include "common/trace.hpp"
#include "fused_kernels_here.hpp"

namespace dtrain::backend::cpu {
namespace {

using testing::square;

std::vector<float> winograd_numbers(std::int64_t count, std::uint32_t stream) {
  RandomStream random(1, RandomUse::drawing, stream, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

struct ProductCase {
  int rows, inner, columns;
  bool left_is_turned, adds;
};

class WinogradProducts : public ::testing::TestWithParam<ProductCase> {};

// Rows that fill the registers and that do not, one to four vectors of columns, several panels.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradProducts,
                         ::testing::Values(ProductCase{24, 5, 16, false, false}, ProductCase{1, 64, 64, false, false},
                                           ProductCase{29, 3, 32, false, true}, ProductCase{15, 17, 48, true, true},
                                           ProductCase{6, 32, 64, true, false}, ProductCase{23, 9, 192, false, true},
                                           ProductCase{64, 31, 128, true, true}));

void expect_definition(const FusedKernels& kernels, const ProductCase& c) {
  const std::vector<float> left = winograd_numbers(std::int64_t{c.rows} * c.inner, 1);
  const std::vector<float> right = winograd_numbers(std::int64_t{c.inner} * c.columns, 2);
  std::vector<float> out = winograd_numbers(std::int64_t{c.rows} * c.columns, 3);
  const std::vector<float> before = out;
  const int panel = kernels.panel(c.columns);
  kernels.product({.rows = c.rows,
                   .inner = c.inner,
                   .columns = c.columns,
                   .left = left.data(),
                   .left_row = c.left_is_turned ? 1 : c.inner,
                   .left_inner = c.left_is_turned ? c.rows : 1,
                   .right = right.data(),
                   .right_inner = panel,
                   .right_panel = std::int64_t{c.inner} * panel,
                   .out = out.data(),
                   .out_row = c.columns,
                   .adds = c.adds});
  for (int row = 0; row < c.rows; ++row) {
    for (int column = 0; column < c.columns; ++column) {
      const auto at = static_cast<std::size_t>(std::int64_t{row} * c.columns + column);
      double sum = c.adds ? before[at] : 0;
      for (int k = 0; k < c.inner; ++k) {
        const int l = c.left_is_turned ? k * c.rows + row : row * c.inner + k;
        const int r = column / panel * c.inner * panel + k * panel + column % panel;
        sum += double{left[static_cast<std::size_t>(l)]} * right[static_cast<std::size_t>(r)];
      }
      ASSERT_NEAR(out[at], sum, 1e-5) << row << ' ' << column << ", panels of " << kernels.widest_panel;
    }
  }
}

TEST_P(WinogradProducts, AreTheirDefinition) {
  if (fused_kernels_here().empty()) GTEST_SKIP() << "no fused multiply-adds";
  for (const FusedKernels* kernels : fused_kernels_here()) expect_definition(*kernels, GetParam());
}

// The paper's matrix for weights.
constexpr double kG[6][3] = {{1. / 4, 0, 0},
                             {-1. / 6, -1. / 6, -1. / 6},
                             {-1. / 6, 1. / 6, -1. / 6},
                             {1. / 24, 1. / 12, 1. / 6},
                             {1. / 24, -1. / 12, 1. / 6},
                             {0, 0, 1}};

void expect_packed(const FusedKernels& kernels, const WinogradWeights& s) {
  const std::vector<float> weights = winograd_numbers(std::int64_t{9} * s.in * s.out, 1);
  const int rows = s.turned ? s.out : s.in, columns = s.turned ? s.in : s.out, panel = kernels.panel(columns);
  const Buffer packed(sizeof(float) * kWinogradPositions * static_cast<std::size_t>(rows) *
                      static_cast<std::size_t>(columns));
  kernels.winograd->weights(s, weights.data(), packed.as<float>());
  for (int position = 0; position < kWinogradPositions; ++position) {
    for (int at = 0; at < rows * columns; ++at) {
      const int row = at % (rows * panel) / panel, column = at / (rows * panel) * panel + at % panel;
      const int first = 9 * (s.turned ? row * s.in + column : column * s.in + row);
      double sum = 0;
      for (int k = 0; k < 9; ++k) {
        sum += kG[position / 6][k / 3] * kG[position % 6][k % 3] *
               weights[static_cast<std::size_t>(std::int64_t{first} + (s.turned ? 8 - k : k))];
      }
      ASSERT_NEAR(packed.as<float>()[position * rows * columns + at], sum, 1e-5) << row << ' ' << column;
    }
  }
}

// Few weights, and so many that they pass the caches.
TEST(WinogradWeightsPacking, IsItsDefinition) {
  if (fused_kernels_here().empty()) GTEST_SKIP() << "no fused multiply-adds";
  for (const FusedKernels* kernels : fused_kernels_here()) {
    for (const bool turned : {false, true}) {
      expect_packed(*kernels, {.out = 32, .in = 48, .turned = turned});
      expect_packed(*kernels, {.out = 128, .in = 64, .turned = turned});
    }
  }
}

std::vector<bfloat16_bits> halves_of(const std::vector<float>& numbers) {
  std::vector<bfloat16_bits> narrow;
  for (const float number : numbers) narrow.push_back(to_bfloat16(number));
  return narrow;
}

// Numbers that bfloat16 has.
std::vector<float> rounded_numbers(std::int64_t count, std::uint32_t stream) {
  std::vector<float> numbers = winograd_numbers(count, stream);
  for (float& number : numbers) number = from_bfloat16(to_bfloat16(number));
  return numbers;
}

constexpr WinogradPlane kPlane{.channels = 48, .h = 7, .w = 9};
constexpr WinogradPlane kNarrowPlane{.channels = 48, .h = 7, .w = 9, .is_bfloat16 = true};
constexpr int kPlaneSize = kPlane.channels * kPlane.h * kPlane.w, kTileSize = kWinogradPositions * kPlane.channels;
constexpr int kTileRows[] = {0, 4}, kTileColumns[] = {0, 4, 8};

void expect_same_values(const FusedKernels& kernels, decltype(WinogradKernels::values) WinogradKernels::*transform) {
  const std::vector<float> sample = rounded_numbers(kPlaneSize, 1);
  const std::vector<bfloat16_bits> narrow = halves_of(sample);
  for (const int row : kTileRows) {
    for (const int column : kTileColumns) {
      std::vector<float> of_floats(kTileSize), of_narrow(kTileSize);
      const auto to = [](std::vector<float>& tile) {
        return WinogradSlots{tile.data(), kPlane.channels, kPlane.channels, kTileSize};
      };
      (kernels.winograd->*transform)(kPlane, sample.data(), row, column, to(of_floats));
      (kernels.winograd->*transform)(kNarrowPlane, narrow.data(), row, column, to(of_narrow));
      EXPECT_EQ(of_narrow, of_floats) << row << ' ' << column;
    }
  }
}

void expect_rounded_results(const FusedKernels& kernels) {
  const std::vector<float> sums = winograd_numbers(kTileSize, 1), bias = winograd_numbers(kPlane.channels, 2);
  std::vector<float> floats(kPlaneSize, 7);
  std::vector<bfloat16_bits> narrow = halves_of(floats);
  for (const int row : kTileRows) {
    for (const int column : kTileColumns) {
      kernels.winograd->results(kPlane, sums.data(), kPlane.channels, bias.data(), row, column, floats.data());
      kernels.winograd->results(kNarrowPlane, sums.data(), kPlane.channels, bias.data(), row, column, narrow.data());
    }
  }
  EXPECT_EQ(narrow, halves_of(floats));
}

TEST(WinogradPlanes, OfBfloat16HaveTheBitsOfTheirFloats) {
  if (fused_kernels_here().empty()) GTEST_SKIP() << "no fused multiply-adds";
  for (const FusedKernels* kernels : fused_kernels_here()) {
    expect_same_values(*kernels, &WinogradKernels::values);
    expect_same_values(*kernels, &WinogradKernels::gradients);
    expect_rounded_results(*kernels);
  }
}

TEST(WinogradWeightsPacking, RoundsWeightsOfBfloat16First) {
  if (fused_kernels_here().empty()) GTEST_SKIP() << "no fused multiply-adds";
  constexpr int kChannels = 32, kPacked = kWinogradPositions * kChannels * kChannels;
  const std::vector<float> weights = winograd_numbers(9 * kChannels * kChannels, 1);
  const std::vector<float> rounded = rounded_numbers(9 * kChannels * kChannels, 1);
  for (const FusedKernels* kernels : fused_kernels_here()) {
    WinogradWeights shape{.out = kChannels, .in = kChannels};
    const Buffer of_rounded(sizeof(float) * kPacked), rounds(sizeof(float) * kPacked);
    kernels->winograd->weights(shape, rounded.data(), of_rounded.as<float>());
    shape.rounds = true;
    kernels->winograd->weights(shape, weights.data(), rounds.as<float>());
    EXPECT_TRUE(std::equal(rounds.as<float>(), rounds.as<float>() + kPacked, of_rounded.as<float>()));
  }
}

// A part of 32 channels of the source, in the middle of a gradient that holds something else.
void expect_gradient(const FusedKernels& kernels, bool passes_caches) {
  constexpr int kFirst = 48;
  const WinogradPart part{.in = 32, .out = 48, .all_in = 96, .passes_caches = passes_caches};
  const std::vector<float> sums = winograd_numbers(std::int64_t{kWinogradPositions} * part.in * part.out, 1);
  const Buffer gradient(sizeof(float) * 9 * static_cast<std::size_t>(part.all_in * part.out));
  std::fill_n(gradient.as<float>(), gradient.size() / sizeof(float), 7.0f);
  kernels.winograd->weights_gradient(part, sums.data(), gradient.as<float>() + 9 * kFirst);
  for (int at = 0; at < 9 * part.all_in * part.out; ++at) {
    const int place = at % 9, in = at / 9 % part.all_in - kFirst, out = at / 9 / part.all_in;
    double sum = 7;
    if (in >= 0 && in < part.in) {
      sum = 0;
      for (int k = 0; k < kWinogradPositions; ++k) {
        sum += kG[k / 6][place / 3] * kG[k % 6][place % 3] *
               sums[static_cast<std::size_t>((std::int64_t{k} * part.in + in) * part.out + out)];
      }
    }
    ASSERT_NEAR(gradient.as<float>()[at], sum, 1e-5) << out << ' ' << in;
  }
}

TEST(WinogradWeightsGradient, IsItsDefinition) {
  if (fused_kernels_here().empty()) GTEST_SKIP() << "no fused multiply-adds";
  for (const FusedKernels* kernels : fused_kernels_here()) {
    expect_gradient(*kernels, false);
    expect_gradient(*kernels, true);
  }
}

struct NetworkCase {
  int first, second, h, w;
};

class WinogradNetworks : public ::testing::TestWithParam<NetworkCase> {};

// Whole tiles, and ones that hang over each edge; a panel of two, three and four vectors, and two panels; channels of
// the source that fill a part and that do not; packed weights that pass the caches, as does the second thread's
// gradient.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradNetworks,
                         ::testing::Values(NetworkCase{32, 48, 8, 8}, NetworkCase{64, 32, 9, 14},
                                           NetworkCase{32, 128, 11, 10}, NetworkCase{128, 256, 8, 8},
                                           NetworkCase{32, 64, 7, 7}));

testing::Problem network(const NetworkCase& c) {
  nn::GraphBuilder b("tiles", {3, c.h, c.w});
  nn::Convolution biased = square(c.second, 3, 1, 1);
  biased.bias = true;
  int x = b.add("first", square(c.first, 1, 1, 0), {b.input()});
  x = b.add("second", biased, {x});
  x = b.add("third", square(c.first, 3, 1, 1), {b.add("tanh", nn::Activation{nn::ActivationKind::tanh}, {x})});
  x = b.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  return testing::make_problem(b.finish(b.add("logits", nn::Dense{.out = 7}, {x})), testing::kSamples);
}

TEST_P(WinogradNetworks, AgreeWithTheReference) {
  for (const int threads : {1, 2}) {
    testing::TraceOptions options;
    options.threads_per_lane = threads;
    EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options), "");
  }
}

// The numbers between the layers are rounded, so the comparison is as coarse as theirs.
TEST_P(WinogradNetworks, ComeNearTheReferenceInBfloat16) {
  if (make_cpu_backend()->why_not(DType::bfloat16)) GTEST_SKIP() << "this CPU lacks bfloat16";
  testing::TraceOptions options;
  options.dtype = DType::bfloat16;
  const testing::Tolerance rounded{
      .loss = 0.02, .gradients = 0.05, .statistics = 0.05, .logits = 0.05, .parameters = 0.05};
  EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options, rounded),
            "");
}

Product product_3x3(int in, int out, int size) {
  Product p;
  p.in = {in, size, size};
  p.out = {out, size, size};
  p.convolution = square(out, 3, 1, 1);
  return p;
}

TEST(WinogradLayers, HaveGradientsByTheWeightsOfSmallerPicturesToo) {
  EXPECT_TRUE(sums_minimally(product_3x3(64, 128, 7), {.has_avx512 = true}));
  EXPECT_FALSE(sums_minimally(product_3x3(64, 128, 6), {.has_avx512 = true}));
  EXPECT_FALSE(sums_minimally(product_3x3(64, 128, 7), {.has_avx2_fma = true})) << "not measured";
  EXPECT_TRUE(sums_minimally(product_3x3(64, 128, 8), {.has_avx2_fma = true}));
}

// As a layer packs them for the forward direction.
std::vector<float> packed_weights(DType dtype, const std::vector<float>& weights) {
  Product p = product_3x3(32, 64, 8);
  p.dtype = dtype;
  ProductLayer layer(p, 0, -1);
  layer.pack_for(Direction::forward, OwnKernels::minimal_filtering);
  dnnl::stream stream(cpu_engine());
  layer.pack(Direction::forward, weights.data(), stream);
  const auto* const first = static_cast<const float*>(layer.forward_weights());
  return {first, first + layer.packed_bytes() / sizeof(float)};
}

TEST(WinogradLayers, OfBfloat16MultiplyByRoundedWeights) {
  if (fused_kernels_here().empty()) GTEST_SKIP() << "no fused multiply-adds";
  const std::vector<float> weights = winograd_numbers(9 * 32 * 64, 1), rounded = rounded_numbers(9 * 32 * 64, 1);
  EXPECT_EQ(packed_weights(DType::bfloat16, weights), packed_weights(DType::float32, rounded));
  EXPECT_NE(packed_weights(DType::float32, weights), packed_weights(DType::float32, rounded));
}

TEST(WinogradLayers, AreThoseWhereItIsFaster) {
  const CpuModel cpu{.has_avx512 = true};
  EXPECT_TRUE(filters_minimally(product_3x3(64, 128, 14), cpu));
  EXPECT_TRUE(filters_minimally(product_3x3(64, 128, 14), {.has_avx2_fma = true}));
  EXPECT_FALSE(filters_minimally(product_3x3(64, 128, 14), {})) << "a chip without fused multiply-adds";
  EXPECT_FALSE(filters_minimally(product_3x3(64, 128, 7), cpu)) << "a small picture";
  EXPECT_FALSE(filters_minimally(product_3x3(3, 64, 32), cpu)) << "the first layer";
  EXPECT_FALSE(filters_minimally(product_3x3(96, 64, 32), cpu)) << "a panel that is not full";
  Product p = product_3x3(64, 64, 32);
  p.dtype = DType::bfloat16;
  EXPECT_TRUE(filters_minimally(p, cpu));
  EXPECT_TRUE(filters_minimally(p, {.has_avx512 = true, .has_avx512_bf16 = true}));
  EXPECT_FALSE(filters_minimally(p, {.has_avx512 = true, .has_amx_bf16 = true})) << "multiplies ten times as fast";
  p = product_3x3(64, 64, 32);
  p.convolution.stride_h = 2;
  EXPECT_FALSE(filters_minimally(p, cpu));
  p = product_3x3(64, 64, 32);
  p.convolution.groups = 2;
  EXPECT_FALSE(filters_minimally(p, cpu));
}

}  // namespace
}  // namespace dtrain::backend::cpu
