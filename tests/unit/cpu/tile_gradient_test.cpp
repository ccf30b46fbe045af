// The weights' gradient by AMX tiles, beside plain sums.
#include "kernels/tile_gradient.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "buffer.hpp"
#include "products/tile_gradient_op.hpp"

namespace dtrain::backend::cpu {
namespace {

Buffer numbers(std::int64_t count, std::uint64_t seed, float most, bool whole) {
  RandomStream random(seed, RandomUse::drawing, 0, 0);
  Buffer made(sizeof(std::uint16_t) * static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) {
    const float value = random.uniform(-most, most);
    made.as<std::uint16_t>()[k] = to_bfloat16(whole ? std::trunc(value) : value);
  }
  return made;
}

// Rooms of exactly the sizes that the kernels are promised.
struct Rooms {
  explicit Rooms(const TileGradient& shape)
      : turned(sizeof(std::uint16_t) * static_cast<std::size_t>(shape.source_size())),
        pairs(sizeof(std::uint16_t) * static_cast<std::size_t>(shape.gradient_size())) {}
  Buffer turned, pairs;
};

void add(const TileGradient& shape, const std::uint16_t* source, const std::uint16_t* gradient, const TileSums& to) {
  const Rooms rooms(shape);
  turn_source(shape, source, rooms.turned.as<std::uint16_t>());
  pair_gradient(shape, gradient, rooms.pairs.as<std::uint16_t>());
  add_tile_products(shape, rooms.turned.as<std::uint16_t>(), rooms.pairs.as<std::uint16_t>(), to);
}

// Full of what no call may read.
Buffer garbage(std::int64_t floats) {
  Buffer made(sizeof(float) * static_cast<std::size_t>(floats));
  std::fill_n(made.as<float>(), floats, std::nanf(""));
  return made;
}

float plain_sum(const TileGradient& s, const std::uint16_t* source, const std::uint16_t* gradient, int out, int in,
                int position) {
  float sum = 0;
  for (int n = 0; n < s.count; ++n) {
    for (int y = 0; y < s.gradient_h(); ++y) {
      for (int x = 0; x < s.gradient_w(); ++x) {
        const int from_y = y * s.stride + position / 3 - 1, from_x = x * s.stride + position % 3 - 1;
        if (from_y < 0 || from_y >= s.h || from_x < 0 || from_x >= s.w) continue;
        sum += from_bfloat16(gradient[((std::int64_t{n} * s.gradient_h() + y) * s.gradient_w() + x) * s.out + out]) *
               from_bfloat16(source[((std::int64_t{n} * s.h + from_y) * s.w + from_x) * s.in + in]);
      }
    }
  }
  return sum;
}

std::int64_t gradient_size(const TileGradient& s) {
  return std::int64_t{s.count} * s.gradient_h() * s.gradient_w() * s.out;
}

class TileGradients : public ::testing::TestWithParam<TileGradient> {
 protected:
  void SetUp() override {
    if (!this_cpu().has_amx_bf16) GTEST_SKIP() << "this CPU lacks AMX";
  }
};

// Pictures of one pixel, of less and more than a step, rows longer than several steps, more steps than are summed at
// once, half a pair of tiles, strides on even and odd sides, and a gradient that passes the caches.
INSTANTIATE_TEST_SUITE_P(Shapes, TileGradients,
                         ::testing::Values(TileGradient{1, 1, 1, 32, 32}, TileGradient{3, 7, 7, 64, 32},
                                           TileGradient{2, 14, 239, 32, 32}, TileGradient{1, 33, 3, 32, 96},
                                           TileGradient{5, 4, 8, 96, 64}, TileGradient{1, 5, 6, 16, 32},
                                           TileGradient{1, 1, 1, 32, 32, 2}, TileGradient{3, 8, 6, 48, 64, 2},
                                           TileGradient{2, 7, 9, 32, 32, 2}, TileGradient{1, 37, 130, 16, 32, 2},
                                           TileGradient{1, 2, 2, 192, 160}));

// Whole numbers, whose sums have no rounding.
TEST_P(TileGradients, AreThePlainSums) {
  const TileGradient& s = GetParam();
  const Buffer source = numbers(std::int64_t{s.count} * s.h * s.w * s.in, 1, 5, true);
  const Buffer gradient = numbers(gradient_size(s), 2, 5, true);
  const Buffer sums = garbage(TileSums::size(s, true)), ordered = garbage(s.sums_size());
  add(s, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(), {sums.as<float>(), true, ordered.as<float>()});
  const float* next = ordered.as<float>();
  for (int out = 0; out < s.out; ++out) {
    for (int in = 0; in < s.in; ++in) {
      for (int position = 0; position < kTilePositions; ++position) {
        ASSERT_EQ(*next++, plain_sum(s, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(), out, in, position))
            << "out " << out << ", in " << in << ", position " << position;
      }
    }
  }
}

TEST_P(TileGradients, AreTheSameHoweverSamplesAreDivided) {
  const TileGradient& s = GetParam();
  const Buffer source = numbers(std::int64_t{s.count} * s.h * s.w * s.in, 3, 1, false);
  const Buffer gradient = numbers(gradient_size(s), 4, 1, false);
  const Buffer block = garbage(TileSums::size(s, true)), sums = garbage(TileSums::size(s, false));
  const Buffer together = garbage(s.sums_size()), apart = garbage(s.sums_size());
  add(s, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(), {block.as<float>(), true, together.as<float>()});
  TileGradient one = s;
  one.count = 1;
  for (int n = 0; n < s.count; ++n) {
    add(one, source.as<std::uint16_t>() + std::int64_t{n} * s.h * s.w * s.in,
        gradient.as<std::uint16_t>() + n * gradient_size(one),
        {sums.as<float>(), n == 0, n + 1 == s.count ? apart.as<float>() : nullptr});
  }
  EXPECT_TRUE(std::equal(together.as<float>(), together.as<float>() + s.sums_size(), apart.as<float>()));
}

TEST(TileGradientLayers, AreThoseOf3x3InBfloat16) {
  const CpuModel cpu{.has_amx_bf16 = true};
  Product p;
  p.in = p.out = {64, 9, 9};
  p.convolution = {.out = 64, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1};
  p.dtype = DType::bfloat16;
  EXPECT_TRUE(has_tile_gradient(p, cpu));
  EXPECT_FALSE(has_tile_gradient(p, {})) << "a chip without AMX";
  p.in.c = 48;
  EXPECT_TRUE(has_tile_gradient(p, cpu));
  p.in.c = 40;
  EXPECT_FALSE(has_tile_gradient(p, cpu)) << "channels that fill no tile";
  p.in.c = 64;
  p.out.c = 48;
  EXPECT_FALSE(has_tile_gradient(p, cpu)) << "channels that fill no pair of tiles";
  p.out.c = 64;
  p.convolution.stride_h = p.convolution.stride_w = 2;
  EXPECT_TRUE(has_tile_gradient(p, cpu));
  p.convolution.stride_h = p.convolution.stride_w = 3;
  EXPECT_FALSE(has_tile_gradient(p, cpu)) << "strides of three";
  p.convolution.stride_h = p.convolution.stride_w = 1;
  p.dtype = DType::float32;
  EXPECT_FALSE(has_tile_gradient(p, cpu));
}

}  // namespace
}  // namespace dtrain::backend::cpu
