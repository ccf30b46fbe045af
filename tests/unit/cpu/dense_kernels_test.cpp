// The kernels of large dense layers, of each instruction set that this CPU has, beside sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "fused_kernels_here.hpp"

namespace dtrain::backend::cpu {
namespace {

std::vector<float> dense_numbers(std::int64_t count, std::uint32_t stream) {
  RandomStream random(1, RandomUse::drawing, stream, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

std::size_t place(int row, int width, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column);
}

// Rows that fill the last tile and that do not, columns of one panel, of one part and more; a sample, one tile of
// them, more, and so many that they are multiplied in another way.
struct DenseKernelCase {
  int rows, columns, samples;
  bool rounds;
};

struct DenseNumbers {
  explicit DenseNumbers(const DenseKernelCase& c)
      : of(c),
        weights(dense_numbers(std::int64_t{c.rows} * c.columns, 1)),
        bias(dense_numbers(c.rows, 2)),
        source(dense_numbers(std::int64_t{c.samples} * c.columns, 3)),
        gradient(dense_numbers(std::int64_t{c.samples} * c.rows, 4)) {}

  std::vector<float> forward(const FusedKernels& kernels, int samples, const float* first_bias) const {
    std::vector<float> result(place(samples, of.rows, 0));
    kernels.dense->forward(layer(), samples, source.data(), first_bias, result.data());
    return result;
  }
  std::vector<float> backward(const FusedKernels& kernels, int samples) const {
    std::vector<float> out(place(samples, of.columns, 0), 9.0f);
    std::vector<float> scratch(static_cast<std::size_t>(dense_scratch(samples)), 9.0f);
    kernels.dense->backward(layer(), samples, gradient.data(), out.data(), scratch.data());
    return out;
  }
  DenseWeights layer() const { return {of.rows, of.columns, weights.data(), of.rounds}; }
  double weight(int row, int column) const {
    const float value = weights[place(row, of.columns, column)];
    return of.rounds ? from_bfloat16(to_bfloat16(value)) : value;
  }

  const DenseKernelCase of;
  std::vector<float> weights, bias, source, gradient;
};

class DenseKernelsOf : public ::testing::TestWithParam<DenseKernelCase> {};

INSTANTIATE_TEST_SUITE_P(Shapes, DenseKernelsOf,
                         ::testing::Values(DenseKernelCase{1, 64, 1, false}, DenseKernelCase{13, 192, 4, false},
                                           DenseKernelCase{64, 1088, 5, true}, DenseKernelCase{130, 320, 23, false},
                                           DenseKernelCase{130, 320, 24, true}, DenseKernelCase{257, 2112, 67, false},
                                           DenseKernelCase{9, 16384, 5, false}, DenseKernelCase{128, 256, 130, true}));

TEST_P(DenseKernelsOf, AreSumsOfProducts) {
  const DenseNumbers numbers(GetParam());
  const auto& [rows, columns, samples, rounds] = numbers.of;
  for (const FusedKernels* kernels : fused_kernels_here()) {
    const std::vector<float> result = numbers.forward(*kernels, samples, numbers.bias.data());
    const std::vector<float> out = numbers.backward(*kernels, samples);
    for (int s = 0; s < samples; ++s) {
      for (int row = 0; row < rows; ++row) {
        double sum = numbers.bias[static_cast<std::size_t>(row)];
        for (int k = 0; k < columns; ++k) {
          sum += numbers.weight(row, k) * numbers.source[place(s, columns, k)];
        }
        ASSERT_NEAR(result[place(s, rows, row)], sum, 2e-4) << s << ' ' << row;
      }
      for (int k = 0; k < columns; ++k) {
        double sum = 0;
        for (int row = 0; row < rows; ++row) {
          sum += numbers.weight(row, k) * numbers.gradient[place(s, rows, row)];
        }
        ASSERT_NEAR(out[place(s, columns, k)], sum, 1e-4) << s << ' ' << k;
      }
    }
  }
}

// A shard may be computed in parts of any size.
TEST_P(DenseKernelsOf, HaveTheSameBitsBesideAnyNumberOfSamples) {
  const DenseNumbers numbers(GetParam());
  for (const FusedKernels* kernels : fused_kernels_here()) {
    const std::vector<float> result = numbers.forward(*kernels, numbers.of.samples, nullptr);
    const std::vector<float> out = numbers.backward(*kernels, numbers.of.samples);
    for (const int samples : {1, 4, 5, 24}) {
      if (samples > numbers.of.samples) continue;
      const std::vector<float> first = numbers.forward(*kernels, samples, nullptr);
      EXPECT_TRUE(std::equal(first.begin(), first.end(), result.begin())) << samples;
      const std::vector<float> first_out = numbers.backward(*kernels, samples);
      EXPECT_TRUE(std::equal(first_out.begin(), first_out.end(), out.begin())) << samples;
    }
  }
}

// As a bfloat16 copy of the weights would.
TEST(DenseKernels, RoundWeightsToTheNearestBfloat16AndKeepNaN) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  DenseNumbers numbers({1, 64, 1, true});
  const float values[] = {1.00390625f, 1.01171875f, -3.3895314e38f, 1e-40f, kInfinity, kNaN};
  for (const FusedKernels* kernels : fused_kernels_here()) {
    for (const float value : values) {
      numbers.weights.assign(64, value);
      numbers.gradient = {1.0f};
      const float rounded = numbers.backward(*kernels, 1).front(), expected = from_bfloat16(to_bfloat16(value));
      EXPECT_TRUE(value != value ? rounded != rounded : rounded == expected) << value << ' ' << rounded;
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu
