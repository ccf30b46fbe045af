// What is compared of a native kernel with its definition, and how near they must be to each other.
#include "gpu/native/outputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace dtrain::backend::cuda {
namespace {

template <typename T>
bool agree(const Compare<T>& compare) {
  for (std::int64_t i = 0; i < compare.threads(); ++i) compare(i);
  return std::all_of(compare.excess, compare.excess + compare.threads(), [](float over) { return over == 0; });
}

template <typename T>
bool near(float native, float defined, DType dtype) {
  constexpr float kLarge = 100;
  T a[2], b[2];
  narrow(native, a[0]), narrow(defined, b[0]);
  narrow(kLarge, a[1]), narrow(kLarge, b[1]);
  std::vector<float> excess(Compare<T>::kThreads);
  return agree(Compare<T>{a, b, 2, tolerance_beside(std::as_bytes(std::span(b)), dtype), excess.data()});
}

TEST(CudaNativeOutputs, AreNearWhereRoundingsExplainTheDifference) {
  EXPECT_TRUE(near<Bf16>(1.0f, 1 + 0x1p-7f, DType::bfloat16));
  EXPECT_TRUE(near<Half>(1.0f, 1 + 0x1p-10f, DType::float16));
  EXPECT_TRUE(near<float>(1.0f, 1 + 0x1p-20f, DType::float32));
  EXPECT_TRUE(near<Bf16>(0.01f, 0.0f, DType::bfloat16)) << "large ones cancelled";
  EXPECT_TRUE(near<Bf16>(NAN, NAN, DType::bfloat16));
  EXPECT_TRUE(near<float>(INFINITY, INFINITY, DType::float32));
}

TEST(CudaNativeOutputs, AreNotNearWhereSomethingElseWasComputed) {
  for (const float other : {1.2f, 0.0f, -1.0f, NAN, INFINITY}) {
    EXPECT_FALSE(near<Bf16>(other * 10, 10, DType::bfloat16)) << other;
    EXPECT_FALSE(near<Half>(other * 10, 10, DType::float16)) << other;
    EXPECT_FALSE(near<float>(10, other * 10, DType::float32)) << other;
  }
  EXPECT_FALSE(near<float>(1, 1.1f, DType::float32));
}

TEST(CudaNativeOutputs, HaveTheSameBitsElsewhere) {
  const std::uint32_t words[] = {0x7fc00000, 1, 0}, others[] = {0x7fc00000, 1, 0x80000000};
  std::vector<float> excess(Compare<std::uint32_t>::kThreads);
  EXPECT_TRUE(agree(Compare<std::uint32_t>{words, words, 3, {}, excess.data()})) << "what is no number, too";
  EXPECT_FALSE(agree(Compare<std::uint32_t>{words, others, 3, {}, excess.data()}));
  EXPECT_TRUE(agree(Compare<std::uint32_t>{words, others, 2, {}, excess.data()}));
}

TEST(CudaNativeOutputs, AreWhatAnOperationLeaves) {
  Bf16 values[4];
  const MuonAdvance<Bf16> product{{}, nullptr, nullptr, values, 4};
  const Outputs outputs = outputs_of(Tiled<MuonAdvance<Bf16>>{product, 1});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].data, values);
  EXPECT_EQ(outputs[0].bytes, static_cast<std::int64_t>(sizeof values));
  EXPECT_EQ(outputs[0].rounded, DType::bfloat16);
  EXPECT_TRUE(outputs_of(product).empty());
  EXPECT_TRUE(outputs_of(Convolution{}).empty());
}

}  // namespace
}  // namespace dtrain::backend::cuda
