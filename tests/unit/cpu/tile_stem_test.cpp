// The weights' gradient of first convolutions by AMX tiles, beside plain sums.
#include "kernels/tile_stem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "buffer.hpp"
#include "products/tile_stem_op.hpp"

namespace dtrain::backend::cpu {
namespace {

std::int64_t results_of(const TileStem& s) { return std::int64_t{s.out_h()} * s.out_w() * s.out; }

Buffer stem_numbers(std::int64_t count, std::uint64_t seed, bool whole) {
  RandomStream random(seed, RandomUse::drawing, 0, 0);
  Buffer made(sizeof(std::uint16_t) * static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) {
    const float value = random.uniform(-5, 5);
    made.as<std::uint16_t>()[k] = to_bfloat16(whole ? std::trunc(value) : value);
  }
  return made;
}

Buffer zero_sums(const TileStem& s) {
  Buffer sums(sizeof(float) * static_cast<std::size_t>(s.sums_size()));
  std::fill_n(sums.as<float>(), s.sums_size(), 0.0f);
  return sums;
}

// In a room of exactly the size that the kernel is promised, full of what it may not read.
void add_samples(const TileStem& s, const std::uint16_t* source, const std::uint16_t* gradient, Buffer& sums) {
  const Buffer room(sizeof(std::uint16_t) * static_cast<std::size_t>(s.room_size()));
  std::fill_n(room.as<std::uint16_t>(), s.room_size(), to_bfloat16(std::nanf("")));
  add_stem_products(s, source, gradient, room.as<std::uint16_t>(), sums.as<float>());
}

float plain_stem_sum(const TileStem& s, const std::uint16_t* source, const std::uint16_t* gradient, int out, int in,
                     int ky, int kx) {
  float sum = 0;
  for (int n = 0; n < s.count; ++n) {
    for (int y = 0; y < s.out_h(); ++y) {
      for (int x = 0; x < s.out_w(); ++x) {
        const int from_y = y * s.stride + ky - s.pad, from_x = x * s.stride + kx - s.pad;
        if (from_y < 0 || from_y >= s.h || from_x < 0 || from_x >= s.w) continue;
        sum += from_bfloat16(gradient[n * results_of(s) + (std::int64_t{y} * s.out_w() + x) * s.out + out]) *
               from_bfloat16(source[((std::int64_t{n} * s.h + from_y) * s.w + from_x) * s.in + in]);
      }
    }
  }
  return sum;
}

class TileStems : public ::testing::TestWithParam<TileStem> {
 protected:
  void SetUp() override {
    if (!this_cpu().has_amx_bf16) GTEST_SKIP() << "this CPU lacks AMX";
  }
};

// ResNet's, CIFAR's and ConvNeXt's; a picture smaller than its kernel; grey ones; rows of more than a step and of a
// whole number of steps; strides that the sides are no multiples of; taps that fill one tile, two, and more.
INSTANTIATE_TEST_SUITE_P(Shapes, TileStems,
                         ::testing::Values(TileStem{2, 30, 38, 3, 64, 7, 2, 3}, TileStem{2, 9, 8, 3, 32, 3, 1, 1},
                                           TileStem{1, 16, 20, 3, 96, 4, 4, 0}, TileStem{3, 4, 5, 3, 32, 7, 2, 3},
                                           TileStem{2, 11, 70, 1, 32, 5, 1, 2}, TileStem{1, 5, 64, 3, 64, 3, 1, 1},
                                           TileStem{1, 13, 17, 1, 32, 3, 3, 1}, TileStem{1, 8, 70, 4, 32, 8, 1, 4}));

// Whole numbers, whose sums have no rounding.
TEST_P(TileStems, AreThePlainSums) {
  const TileStem& s = GetParam();
  const Buffer source = stem_numbers(std::int64_t{s.count} * s.h * s.w * s.in, 1, true);
  const Buffer gradient = stem_numbers(s.count * results_of(s), 2, true);
  Buffer sums = zero_sums(s);
  add_samples(s, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(), sums);
  const Buffer ordered(sizeof(float) * static_cast<std::size_t>(s.taps() * s.out));
  order_stem_sums(s, sums.as<float>(), ordered.as<float>());
  const float* next = ordered.as<float>();
  for (int out = 0; out < s.out; ++out) {
    for (int in = 0; in < s.in; ++in) {
      for (int ky = 0; ky < s.kernel; ++ky) {
        for (int kx = 0; kx < s.kernel; ++kx) {
          ASSERT_EQ(*next++,
                    plain_stem_sum(s, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(), out, in, ky, kx))
              << "out " << out << ", in " << in << ", at " << ky << ' ' << kx;
        }
      }
    }
  }
}

TEST_P(TileStems, AreTheSameHoweverSamplesAreDivided) {
  const TileStem& s = GetParam();
  const Buffer source = stem_numbers(std::int64_t{s.count} * s.h * s.w * s.in, 3, false);
  const Buffer gradient = stem_numbers(s.count * results_of(s), 4, false);
  Buffer together = zero_sums(s), apart = zero_sums(s);
  add_samples(s, source.as<std::uint16_t>(), gradient.as<std::uint16_t>(), together);
  TileStem one = s;
  one.count = 1;
  for (int n = 0; n < s.count; ++n) {
    add_samples(one, source.as<std::uint16_t>() + std::int64_t{n} * s.h * s.w * s.in,
                gradient.as<std::uint16_t>() + n * results_of(s), apart);
  }
  EXPECT_TRUE(std::equal(together.as<float>(), together.as<float>() + s.sums_size(), apart.as<float>()));
}

TEST(TileStemLayers, AreFirstConvolutionsInBfloat16) {
  const CpuModel cpu{.has_amx_bf16 = true};
  Product p;
  p.in = {3, 32, 32};
  p.out = {64, 16, 16};
  p.convolution = {.out = 64, .kernel_h = 7, .kernel_w = 7, .stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3};
  p.dtype = DType::bfloat16;
  EXPECT_TRUE(has_tile_stem(p, cpu));
  EXPECT_FALSE(has_tile_stem(p, {})) << "a chip without AMX";
  p.in.c = 16;
  EXPECT_FALSE(has_tile_stem(p, cpu)) << "channels that fill tiles";
  p.in.c = 3;
  p.out.c = 48;
  EXPECT_FALSE(has_tile_stem(p, cpu)) << "channels that fill no pair of tiles";
  p.out.c = 64;
  p.convolution.kernel_w = 5;
  EXPECT_FALSE(has_tile_stem(p, cpu)) << "a kernel that is no square";
  p.convolution.kernel_h = p.convolution.kernel_w = 16;
  EXPECT_FALSE(has_tile_stem(p, cpu)) << "patches";
  p.convolution.kernel_h = p.convolution.kernel_w = 7;
  p.dtype = DType::float32;
  EXPECT_FALSE(has_tile_stem(p, cpu));
}

}  // namespace
}  // namespace dtrain::backend::cpu
