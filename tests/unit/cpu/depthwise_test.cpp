// The weights' gradient of a depthwise convolution, beside its definition, by every instruction set's kernels.
#include "products/depthwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::backend::cpu {
namespace {

// All numbers have bfloat16's values, so both types have the same gradient.
std::vector<float> depthwise_numbers(std::int64_t count, std::uint32_t stream) {
  RandomStream random(1, RandomUse::drawing, stream, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = from_bfloat16(to_bfloat16(random.uniform(-2, 2)));
  return values;
}

std::vector<std::uint16_t> narrowed(const std::vector<float>& values) {
  std::vector<std::uint16_t> narrow;
  for (const float value : values) narrow.push_back(to_bfloat16(value));
  return narrow;
}

class Depthwise : public ::testing::TestWithParam<Window> {
 protected:
  std::int64_t positions() const { return std::int64_t{s.kernel_h} * s.kernel_w; }

  // [position][channel], of two samples that are alike.
  std::vector<float> sums(const TensorKernels& kernels, const void* in, const void* incoming) const {
    const std::int64_t pitch = depthwise_pitch(s.channels);
    std::vector<float> scratch(depthwise_scratch(s), NAN), all(static_cast<std::size_t>(positions() * pitch)), used;
    for (int sample = 0; sample < 2; ++sample) kernels.depthwise_weights(s, in, incoming, scratch.data(), all.data());
    for (std::int64_t k = 0; k < positions(); ++k) {
      used.insert(used.end(), all.begin() + k * pitch, all.begin() + k * pitch + s.channels);
    }
    return used;
  }

  double defined(int kh, int kw, int channel) const {
    double sum = 0;
    for (int oh = 0; oh < s.out_h; ++oh) {
      for (int ow = 0; ow < s.out_w; ++ow) {
        const int h = oh * s.stride_h - s.pad_h + kh, w = ow * s.stride_w - s.pad_w + kw;
        if (h < 0 || h >= s.in_h || w < 0 || w >= s.in_w) continue;
        sum += double{x[static_cast<std::size_t>((h * s.in_w + w) * s.channels + channel)]} *
               gradient[static_cast<std::size_t>((oh * s.out_w + ow) * s.channels + channel)];
      }
    }
    return 2 * sum;
  }

  const Window s = GetParam();
  const std::vector<float> x = depthwise_numbers(std::int64_t{s.in_h} * s.in_w * s.channels, 1);
  const std::vector<float> gradient = depthwise_numbers(std::int64_t{s.out_h} * s.out_w * s.channels, 2);
};

Window window(int channels, int size, int kernel, int stride, int pad) {
  const int out = (size + 2 * pad - kernel) / stride + 1;
  return {.channels = channels,
          .in_h = size,
          .in_w = size + 1,
          .out_h = out,
          .out_w = (size + 1 + 2 * pad - kernel) / stride + 1,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

// Whole and broken blocks of channels; kernels as large as the picture, strides that pass over rows, no padding.
INSTANTIATE_TEST_SUITE_P(Shapes, Depthwise,
                         ::testing::Values(window(32, 14, 3, 1, 1), window(72, 11, 3, 2, 1), window(40, 14, 5, 1, 2),
                                           window(16, 9, 5, 2, 2), window(96, 10, 7, 1, 3), window(5, 8, 4, 1, 0),
                                           window(33, 7, 7, 1, 0), window(16, 13, 2, 3, 0), window(8, 3, 5, 1, 2)));

TEST_P(Depthwise, IsItsDefinition) {
  const std::vector<float> found = sums(select_kernels().float32, x.data(), gradient.data());
  std::size_t next = 0;
  for (int kh = 0; kh < s.kernel_h; ++kh) {
    for (int kw = 0; kw < s.kernel_w; ++kw) {
      for (int channel = 0; channel < s.channels; ++channel) {
        ASSERT_NEAR(found[next++], defined(kh, kw, channel), 1e-3) << kh << ' ' << kw << ' ' << channel;
      }
    }
  }
}

TEST_P(Depthwise, HasTheBitsOfThePlainKernelsInBothTypes) {
  const std::vector<float> plain = sums(generic::kKernels.float32, x.data(), gradient.data());
  EXPECT_EQ(sums(select_kernels().float32, x.data(), gradient.data()), plain);
  const std::vector<std::uint16_t> narrow_x = narrowed(x), narrow_gradient = narrowed(gradient);
  EXPECT_EQ(sums(select_kernels().bfloat16, narrow_x.data(), narrow_gradient.data()), plain);
}

TEST(DepthwiseProduct, GoesByOwnKernelsWhereTheseAreFaster) {
  Product p;
  p.in = p.out = {8, 4, 4};
  p.convolution = {.out = 8, .kernel_h = 5, .kernel_w = 5, .pad_h = 2, .pad_w = 2, .groups = 8};
  EXPECT_TRUE(has_own_weights_gradient(p));
  p.convolution.groups = 4;
  EXPECT_FALSE(has_own_weights_gradient(p)) << "two channels in a group";
  p.convolution.groups = 8;
  p.out.c = 16;
  EXPECT_FALSE(has_own_weights_gradient(p)) << "two kernels for a channel";
  p.out.c = 8;
  p.convolution.kernel_h = p.convolution.kernel_w = 3;
  EXPECT_FALSE(has_own_weights_gradient(p)) << "oneDNN is quick with 3x3 in float32";
  p.dtype = DType::bfloat16;
  EXPECT_TRUE(has_own_weights_gradient(p));
}

}  // namespace
}  // namespace dtrain::backend::cpu
