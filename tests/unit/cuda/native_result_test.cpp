#include "gpu/native/native_result.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain::backend::cuda {
namespace {

template <typename T>
bool near(float native, float defined, DType dtype) {
  constexpr float kLarge = 100;
  T a[2], b[2];
  narrow(native, a[0]), narrow(defined, b[0]);
  narrow(kLarge, a[1]), narrow(kLarge, b[1]);
  return are_near(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), dtype);
}

TEST(CudaNativeResult, IsNearWhereRoundingsExplainTheDifference) {
  EXPECT_TRUE(near<Bf16>(1.0f, 1 + 0x1p-7f, DType::bfloat16));
  EXPECT_TRUE(near<Half>(1.0f, 1 + 0x1p-10f, DType::float16));
  EXPECT_TRUE(near<float>(1.0f, 1 + 0x1p-20f, DType::float32));
  EXPECT_TRUE(near<Bf16>(0.01f, 0.0f, DType::bfloat16)) << "large ones cancelled";
  EXPECT_TRUE(near<Bf16>(NAN, NAN, DType::bfloat16));
  EXPECT_TRUE(near<float>(INFINITY, INFINITY, DType::float32));
}

TEST(CudaNativeResult, IsNotNearWhereSomethingElseWasComputed) {
  for (const float other : {1.2f, 0.0f, -1.0f, NAN, INFINITY}) {
    EXPECT_FALSE(near<Bf16>(other * 10, 10, DType::bfloat16)) << other;
    EXPECT_FALSE(near<Half>(other * 10, 10, DType::float16)) << other;
    EXPECT_FALSE(near<float>(10, other * 10, DType::float32)) << other;
  }
  EXPECT_FALSE(near<float>(1, 1.1f, DType::float32));
}

TEST(CudaNativeResult, IsWhatAProductLeaves) {
  Bf16 values[3];
  const MuonAdvance<Bf16> product{{}, nullptr, nullptr, values, 3};
  const auto result = result_of(Tiled<MuonAdvance<Bf16>>{product, 1});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->values, values);
  EXPECT_EQ(result->bytes, sizeof values);
  EXPECT_EQ(result->dtype, DType::bfloat16);
  EXPECT_FALSE(result_of(product));
  EXPECT_FALSE(result_of(Convolution{}));
}

}  // namespace
}  // namespace dtrain::backend::cuda
