#include "compression/power_sgd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <dtrain/base/random.hpp>

namespace dtrain::train {
namespace {

using Floats = std::vector<float>;

nn::TensorView tensor(std::vector<std::int64_t> shape, std::int64_t offset) {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return {.name = "t", .shape = std::move(shape), .offset = offset, .size = size};
}

// A convolution, a bias, a matrix that factors of two columns would not make smaller, and a dense layer.
const std::vector<nn::TensorView> kTensors = {tensor({16, 3, 3, 3}, 0), tensor({16}, 432), tensor({3, 4}, 448),
                                              tensor({20, 30}, 460)};
constexpr std::size_t kFloats = 1060;

Floats drawn(std::uint32_t number) {
  RandomStream random(5, RandomUse::drawing, number, 0);
  Floats values(kFloats);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

double length(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

// What one exchange makes of these gradients, with Q as `factors` has it.
Floats exchanged(PowerSgd& factors, const Floats& gradients) {
  Floats left(static_cast<std::size_t>(factors.left_size())), right(static_cast<std::size_t>(factors.right_size()));
  factors.multiply_left(gradients, left);
  factors.set_left(left);
  factors.multiply_right(gradients, right);
  Floats result(kFloats);
  factors.expand(left, right, result);
  factors.set_right(right);
  return result;
}

TEST(PowerSgd, SendsFactorsOfWhatTheyMakeSmaller) {
  const PowerSgd factors(kTensors, 2);
  EXPECT_EQ(factors.left_size(), 2 * 16 + 2 * 20 + 16 + 12);
  EXPECT_EQ(factors.right_size(), 2 * 27 + 2 * 30);
  const PowerSgd more(kTensors, 30);
  EXPECT_EQ(more.left_size(), static_cast<std::int64_t>(kFloats)) << "no matrix is smaller as two such factors";
  EXPECT_EQ(more.right_size(), 0);
}

TEST(PowerSgd, AMatrixOfThatRankComesBackWhole) {
  Floats gradients(kFloats);
  RandomStream random(9, RandomUse::drawing, 0, 0);
  Floats a(20 * 2), b(30 * 2);
  for (float& value : a) value = random.normal();
  for (float& value : b) value = random.normal();
  for (std::size_t row = 0; row < 20; ++row) {
    for (std::size_t column = 0; column < 30; ++column) {
      gradients[460 + 30 * row + column] = a[row] * b[column] + a[20 + row] * b[30 + column];
    }
  }
  PowerSgd factors(kTensors, 2);
  factors.begin(Floats(kFloats));
  const Floats result = exchanged(factors, gradients);
  for (std::size_t i = 0; i < kFloats; ++i) ASSERT_NEAR(result[i], gradients[i], 1e-5) << i;
}

TEST(PowerSgd, WhatIsNoMatrixTravelsAsItIs) {
  PowerSgd factors(kTensors, 2);
  factors.begin(Floats(kFloats));
  const Floats gradients = drawn(1), result = exchanged(factors, gradients);
  for (std::size_t i = 432; i < 460; ++i) EXPECT_EQ(result[i], gradients[i]);
}

// Each step is one of the power method: with the same gradients the factors turn to their largest directions.
TEST(PowerSgd, StepsComeNearerToTheGradients) {
  PowerSgd factors(kTensors, 2);
  factors.begin(Floats(kFloats));
  const Floats gradients = drawn(2);
  const double first = length(exchanged(factors, gradients));
  for (int step = 0; step < 30; ++step) exchanged(factors, gradients);
  EXPECT_GT(length(exchanged(factors, gradients)), 1.01 * first);

  PowerSgd warm(kTensors, 2);
  warm.begin(gradients);
  EXPECT_GT(length(exchanged(warm, gradients)), 1.005 * first) << "so does what all ranks hold back";
}

TEST(PowerSgd, TheRestIsWhatWasNotSent) {
  PowerSgd factors(kTensors, 2);
  factors.begin(drawn(4));
  const Floats gradients = drawn(3);
  Floats left(static_cast<std::size_t>(factors.left_size())), right(static_cast<std::size_t>(factors.right_size()));
  factors.multiply_left(gradients, left);
  factors.set_left(left);
  factors.multiply_right(gradients, right);
  Floats sent(kFloats), rest = gradients;
  factors.expand(left, right, sent);
  factors.subtract(right, rest);
  for (std::size_t i = 0; i < kFloats; ++i) ASSERT_NEAR(sent[i] + rest[i], gradients[i], 1e-6) << i;
  EXPECT_LT(length(std::span(rest).subspan(432, 28)), 1e-30);
  EXPECT_LT(length(rest), length(gradients));
}

// Rows of zeros, or all rows alike: columns that depend on others would point anywhere, or be sent twice.
TEST(PowerSgd, GradientsOfALowerRankAreNotSentTwice) {
  for (const bool zeros : {true, false}) {
    Floats gradients(kFloats, zeros ? 0.0f : 1.0f);
    PowerSgd factors(kTensors, 2);
    factors.begin(gradients);
    for (int step = 0; step < 3; ++step) {
      const Floats result = exchanged(factors, gradients);
      for (std::size_t i = 0; i < kFloats; ++i) ASSERT_NEAR(result[i], gradients[i], 1e-5) << i;
    }
    const Floats others = drawn(6);
    for (int step = 0; step < 10; ++step) exchanged(factors, others);
    PowerSgd fresh(kTensors, 2);
    fresh.begin(Floats(kFloats));
    for (int step = 0; step < 10; ++step) exchanged(fresh, others);
    EXPECT_NEAR(length(exchanged(factors, others)), length(exchanged(fresh, others)), 0.5)
        << "both columns of a factor are used again";
  }
}

}  // namespace
}  // namespace dtrain::train
