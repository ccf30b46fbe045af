#include <dtrain/base/float16.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace dtrain {
namespace {

// The compiler's own type judges.
_Float16 judge(float16_bits bits) {
  _Float16 value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float16_bits bits_of(_Float16 value) {
  float16_bits bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

TEST(Float16, OfAll65536ValuesIsReadExactlyAndWrittenBack) {
  for (std::uint32_t k = 0; k < 0x10000; ++k) {
    const auto bits = static_cast<float16_bits>(k);
    const float value = from_float16(bits), expected = static_cast<float>(judge(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << k;
      EXPECT_TRUE(std::isnan(from_float16(to_float16(value)))) << k;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << k;
    ASSERT_EQ(to_float16(value), bits) << k;
  }
}

// Every halfway point, and the float32 on each side of it.
TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t k = 0; k < 0x7c00; ++k) {
    const float low = from_float16(static_cast<float16_bits>(k));
    const float high = k == 0x7bff ? 65536.0f : from_float16(static_cast<float16_bits>(k + 1));
    const float middle = low + (high - low) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
      ASSERT_EQ(to_float16(value), bits_of(static_cast<_Float16>(value))) << value;
      ASSERT_EQ(to_float16(-value), bits_of(static_cast<_Float16>(-value))) << value;
    }
  }
}

TEST(Float16, TakesWhatIsTooLargeForInfinityAndKeepsItsSign) {
  EXPECT_EQ(to_float16(65519.996f), 0x7bff);
  EXPECT_EQ(to_float16(65520), 0x7c00);
  EXPECT_EQ(to_float16(-1e30f), 0xfc00);
  EXPECT_EQ(to_float16(-HUGE_VALF), 0xfc00);
  EXPECT_EQ(to_float16(-1e-30f), 0x8000);
}

}  // namespace
}  // namespace dtrain
