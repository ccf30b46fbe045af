// 3x3 convolutions by AMX tiles, forward and by the source, beside plain sums.
#include "kernels/tile_convolution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "buffer.hpp"
#include "products/tile_convolution_op.hpp"

namespace dtrain::backend::cpu {
namespace {

std::vector<float> whole_numbers(std::int64_t count, std::uint64_t seed) {
  RandomStream random(seed, RandomUse::drawing, 0, 0);
  std::vector<float> made(static_cast<std::size_t>(count));
  for (float& number : made) number = std::trunc(random.uniform(-4, 4));
  return made;
}

std::vector<std::uint16_t> in_bfloat16(const std::vector<float>& numbers) {
  std::vector<std::uint16_t> made;
  for (const float number : numbers) made.push_back(to_bfloat16(number));
  return made;
}

std::int64_t source_size(const TileConvolution& s) { return std::int64_t{s.count} * s.h * s.w * s.in; }
std::int64_t strided_size(const TileConvolution& s) {
  return std::int64_t{s.count} * s.strided_h() * s.strided_w() * s.out;
}

// Results of the kernels, in rooms of exactly the sizes that they are promised, which begin with no numbers.
std::vector<std::uint16_t> results(const TileConvolution& s, const std::vector<std::uint16_t>& operand,
                                   const std::vector<float>& weights, const float* bias) {
  Buffer padded(sizeof(std::uint16_t) * static_cast<std::size_t>(s.padded_size()));
  Buffer packed(sizeof(std::uint16_t) * static_cast<std::size_t>(s.weights_size()));
  const std::uint16_t no_number = to_bfloat16(std::numeric_limits<float>::quiet_NaN());
  std::fill_n(padded.as<std::uint16_t>(), s.padded_size(), no_number);
  std::vector<std::uint16_t> result(static_cast<std::size_t>(s.is_forward() ? strided_size(s) : source_size(s)),
                                    no_number);
  pad_operand(s, operand.data(), padded.as<std::uint16_t>());
  pack_tile_weights(s, weights.data(), packed.as<std::uint16_t>());
  convolve_tiles(s, padded.as<std::uint16_t>(), packed.as<std::uint16_t>(), bias, result.data());
  return result;
}

// Calls use(source element, strided element, weight) for each product of the layer.
template <typename Use>
void each_product(const TileConvolution& s, Use use) {
  for (int n = 0; n < s.count; ++n) {
    for (int y = 0; y < s.strided_h(); ++y) {
      for (int x = 0; x < s.strided_w(); ++x) {
        for (int position = 0; position < kTilePositions; ++position) {
          const int from_y = y * s.stride + position / 3 - 1, from_x = x * s.stride + position % 3 - 1;
          if (from_y < 0 || from_y >= s.h || from_x < 0 || from_x >= s.w) continue;
          const std::int64_t source = ((std::int64_t{n} * s.h + from_y) * s.w + from_x) * s.in;
          const std::int64_t strided = ((std::int64_t{n} * s.strided_h() + y) * s.strided_w() + x) * s.out;
          for (int in = 0; in < s.in; ++in) {
            for (int out = 0; out < s.out; ++out) {
              use(static_cast<std::size_t>(source + in), static_cast<std::size_t>(strided + out),
                  static_cast<std::size_t>((out * s.in + in) * kTilePositions + position));
            }
          }
        }
      }
    }
  }
}

class TileConvolutions : public ::testing::TestWithParam<TileConvolution> {
 protected:
  void SetUp() override {
    if (!this_cpu().has_amx_bf16 || !this_cpu().has_avx512_bf16) GTEST_SKIP() << "this CPU lacks AMX";
  }
};

// Pictures of one pixel, of less and more than a tile, odd and even sides, more channels on either side, and weights
// that pass out of the cache.
INSTANTIATE_TEST_SUITE_P(Shapes, TileConvolutions,
                         ::testing::Values(TileConvolution{1, 1, 1, 32, 32}, TileConvolution{3, 7, 7, 64, 32},
                                           TileConvolution{2, 3, 40, 32, 96}, TileConvolution{1, 8, 8, 256, 256},
                                           TileConvolution{1, 1, 1, 32, 32, 2}, TileConvolution{3, 8, 6, 96, 32, 2},
                                           TileConvolution{2, 7, 9, 32, 64, 2}));

// Whole numbers, whose sums have no rounding; the last one rounds them to bfloat16.
TEST_P(TileConvolutions, AreThePlainSums) {
  TileConvolution s = GetParam();
  const std::vector<float> source = whole_numbers(source_size(s), 1), weights = whole_numbers(s.weights_size(), 2);
  const std::vector<float> bias = whole_numbers(s.out, 3);
  std::vector<float> sums(static_cast<std::size_t>(strided_size(s)));
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = bias[k % bias.size()];
  each_product(s, [&](std::size_t in, std::size_t out, std::size_t w) { sums[out] += source[in] * weights[w]; });
  EXPECT_EQ(results(s, in_bfloat16(source), weights, bias.data()), in_bfloat16(sums));
}

TEST_P(TileConvolutions, HaveThePlainGradientBySource) {
  TileConvolution s = GetParam();
  s.direction = TileDirection::by_source;
  const std::vector<float> slopes = whole_numbers(strided_size(s), 4), weights = whole_numbers(s.weights_size(), 5);
  std::vector<float> sums(static_cast<std::size_t>(source_size(s)));
  each_product(s, [&](std::size_t in, std::size_t out, std::size_t w) { sums[in] += slopes[out] * weights[w]; });
  EXPECT_EQ(results(s, in_bfloat16(slopes), weights, nullptr), in_bfloat16(sums));
}

// No number in a sample stays in it.
TEST_P(TileConvolutions, DoNotMixSamples) {
  TileConvolution s = GetParam();
  std::vector<float> source = whole_numbers(source_size(s), 6);
  const std::vector<float> weights = whole_numbers(s.weights_size(), 7);
  for (const TileDirection direction : {TileDirection::forward, TileDirection::by_source}) {
    s.direction = direction;
    source.resize(static_cast<std::size_t>(s.is_forward() ? source_size(s) : strided_size(s)), 1.0f);
    const std::vector<std::uint16_t> clean = results(s, in_bfloat16(source), weights, nullptr);
    std::vector<float> spoilt = source;
    const std::size_t sample = spoilt.size() / static_cast<std::size_t>(s.count);
    for (std::size_t k = 0; k < sample; ++k) spoilt[k] = std::numeric_limits<float>::infinity();
    const std::vector<std::uint16_t> beside = results(s, in_bfloat16(spoilt), weights, nullptr);
    const auto others = static_cast<std::ptrdiff_t>(clean.size()) / s.count;
    EXPECT_TRUE(std::equal(clean.begin() + others, clean.end(), beside.begin() + others));
  }
}

TEST(TileConvolutionLayers, AreThoseThatGain) {
  const CpuModel cpu{.has_avx512_bf16 = true, .has_amx_bf16 = true};
  const auto layer = [](int channels, int side, int stride) {
    Product p;
    p.in = {channels, side, side};
    p.out = {channels, (side - 1) / stride + 1, (side - 1) / stride + 1};
    p.convolution = {.out = channels, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1};
    p.convolution.stride_h = p.convolution.stride_w = stride;
    p.dtype = p.out_dtype = DType::bfloat16;
    return p;
  };
  EXPECT_TRUE(has_tile_convolution(layer(512, 7, 1), Direction::forward, cpu));
  EXPECT_TRUE(has_tile_convolution(layer(512, 14, 2), Direction::forward, cpu));
  EXPECT_FALSE(has_tile_convolution(layer(512, 14, 1), Direction::forward, cpu)) << "rows that fill a tile";
  EXPECT_FALSE(has_tile_convolution(layer(256, 7, 1), Direction::forward, cpu)) << "weights that the cache holds";
  EXPECT_TRUE(has_tile_convolution(layer(64, 8, 1), Direction::backward, cpu));
  EXPECT_TRUE(has_tile_convolution(layer(64, 32, 2), Direction::backward, cpu));
  EXPECT_FALSE(has_tile_convolution(layer(64, 32, 1), Direction::backward, cpu)) << "rows that fill a tile";
  EXPECT_FALSE(has_tile_convolution(layer(48, 8, 1), Direction::backward, cpu)) << "channels that fill no tiles";
  EXPECT_FALSE(has_tile_convolution(layer(64, 8, 1), Direction::backward, {})) << "a chip without AMX";
  Product p = layer(64, 8, 1);
  p.dtype = DType::float32;
  EXPECT_FALSE(has_tile_convolution(p, Direction::backward, cpu));
  p.dtype = DType::bfloat16;
  p.out_dtype = DType::float32;
  EXPECT_FALSE(has_tile_convolution(p, Direction::backward, cpu)) << "logits";
}

}  // namespace
}  // namespace dtrain::backend::cpu
