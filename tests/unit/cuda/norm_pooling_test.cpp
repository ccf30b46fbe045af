// A batch norm that is computed with the max pooling behind it: what the norm, the ReLU and the pooling give apart.
#include <gtest/gtest.h>

#include <cmath>

#include "call.hpp"
#include "random_values.hpp"

namespace dtrain::backend::cuda {
namespace {

template <typename T>
std::vector<T> nothing(std::int64_t size) {
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& value : values) narrow(std::nanf(""), value);
  return values;
}

template <typename T>
std::vector<float> wide(const std::vector<T>& values) {
  std::vector<float> floats;
  for (const T& value : values) floats.push_back(widen(value));
  return floats;
}

template <typename Kernel>
void run_norm_pooling(const Kernel& kernel) {
  for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
}

// Windows that overlap, that do not, and that leave elements out; channels in whole Packs and not.
const PoolShape kShapes[] = {{3, 16, {9, 5, 3, 2, 1}, {7, 4, 3, 2, 1}, true},
                             {2, 10, {8, 4, 2, 2, 0}, {6, 3, 2, 2, 0}, true},
                             {2, 8, {7, 2, 3, 4, 0}, {9, 3, 2, 3, 0}, true}};

template <typename T>
class NormPoolingOn : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, Bf16, Half>;
TYPED_TEST_SUITE(NormPoolingOn, ValueTypes);

TYPED_TEST(NormPoolingOn, ForwardGivesTheBitsOfNormAndPooling) {
  using T = TypeParam;
  for (const PoolShape& shape : kShapes) {
    const std::int64_t in = shape.inputs() * shape.c, out = shape.outputs() * shape.c;
    const std::vector<T> x = random_values<T>(in, 1, -2, 2);
    std::vector<float> numbers = random_values<float>(NormCoefficients::rows * std::int64_t{shape.c}, 2, -2, 2);
    const NormCoefficients coefficients{numbers.data(), shape.c};

    std::vector<T> normed = nothing<T>(in), y = nothing<T>(out);
    std::vector<std::uint8_t> places(static_cast<std::size_t>(out));
    NormApply<T> apply{};
    apply.x = x.data(), apply.y = normed.data(), apply.coefficients = coefficients, apply.relu = true;
    apply.cut = few_rows(shape.inputs());
    run_norm_pooling(apply);
    run_norm_pooling(MaxPool<T>{normed.data(), y.data(), places.data(), shape});

    std::vector<T> fused = nothing<T>(out), largest = nothing<T>(out);
    std::vector<std::uint8_t> kept(places.size());
    run_norm_pooling(NormMaxPool<T>{x.data(), fused.data(), largest.data(), kept.data(), coefficients, shape});
    EXPECT_EQ(wide(fused), wide(y));
    for (std::int64_t i = 0; i < out; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(kept[at], widen(y[at]) > 0 ? places[at] : kNowhere<std::uint8_t>);
      const PoolPlace<T> window(i / shape.c * packs_of(shape.c, Pack<T>::size), shape.h.out, shape.w.out, shape.c);
      const std::int32_t row = shape.h.start(window.y) + places[at] / shape.w.kernel;
      const std::int32_t column = shape.w.start(window.x) + places[at] % shape.w.kernel;
      const std::int64_t pixel = shape.input_at(window.sample, row, column);
      EXPECT_EQ(widen(largest[at]), widen(x[static_cast<std::size_t>(pixel * shape.c + i % shape.c)]));
    }
    std::vector<T> in_evaluation = nothing<T>(out);
    run_norm_pooling(NormMaxPool<T>{x.data(), in_evaluation.data(), nullptr, nullptr, coefficients, shape});
    EXPECT_EQ(wide(in_evaluation), wide(y));
  }
}

// A gradient in two parts, with an addend and without one.
TEST(NormPooling, BackwardGivesTheBitsOfPoolingAndNorm) {
  for (const PoolShape& shape : kShapes) {
    const std::int64_t in = shape.inputs() * shape.c, out = shape.outputs() * shape.c;
    const std::vector<float> x = random_values<float>(in, 1, -2, 2), others = random_values<float>(in, 5, -2, 2);
    const std::vector<float> dy = random_values<float>(out, 3, -2, 2), dy2 = random_values<float>(out, 4, -2, 2);
    std::vector<float> numbers = random_values<float>(NormCoefficients::rows * std::int64_t{shape.c}, 2, -2, 2);
    const NormCoefficients coefficients{numbers.data(), shape.c};
    std::vector<float> y(static_cast<std::size_t>(out)), largest(y.size()), sum(y.size());
    std::vector<std::uint8_t> places(y.size());
    run_norm_pooling(NormMaxPool<float>{x.data(), y.data(), largest.data(), places.data(), coefficients, shape});
    run_norm_pooling(Add<float>{dy.data(), dy2.data(), sum.data(), out});
    for (const float* const addend : {static_cast<const float*>(nullptr), others.data()}) {
      std::vector<float> gathered(static_cast<std::size_t>(in)), apart = gathered, fused = gathered;
      run_norm_pooling(MaxPoolGradient<float>{{sum.data(), nullptr, places.data(), shape}, gathered.data()});
      NormGradient<float> gradient{};
      gradient.incoming = {gathered.data(), nullptr, nullptr, true};
      gradient.x = x.data(), gradient.addend = addend, gradient.dx = apart.data();
      gradient.coefficients = coefficients, gradient.cut = few_rows(shape.inputs());
      run_norm_pooling(gradient);
      run_norm_pooling(NormMaxPoolGradient<float>{
          {dy.data(), dy2.data(), places.data(), shape}, x.data(), addend, fused.data(), coefficients});
      EXPECT_EQ(fused, apart);
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
