#include "common/replay_accelerator.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace dtrain::backend::cuda {
namespace {

// What does not fit 8 bits of mantissa: half-way between two of bfloat16, a little more, and what is not finite.
const std::vector<float> kLeft{1.0f, 0x1.01p0f, 0x1.010002p0f, 0x1.03p0f, 3e38f, -2.5f};
const std::vector<float> kRight{0.0f, 0.0f, 0.0f, 0.0f, 3e38f, 2.5f};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ReplayAccelerator, AddsAndRoundsToTheNearestEvenBfloat16) {
  const auto device = make_replay_accelerator();
  const auto size = static_cast<std::int64_t>(kLeft.size());
  std::vector<float> sum(kLeft.size());
  device->add(sum.data(), kLeft.data(), kRight.data(), size, false);
  EXPECT_EQ(sum, (std::vector<float>{1.0f, 0x1.01p0f, 0x1.010002p0f, 0x1.03p0f, kInfinity, 0.0f}));
  device->add(sum.data(), kLeft.data(), kRight.data(), size, true);
  EXPECT_EQ(sum, (std::vector<float>{1.0f, 1.0f, 0x1.02p0f, 0x1.04p0f, kInfinity, 0.0f}));
}

TEST(ReplayAccelerator, NarrowsAndWidensWithoutLossOfWhatIsRounded) {
  const auto device = make_replay_accelerator();
  const std::vector<float> values{1.0f, 0x1.02p0f, -0x1.04p-40f, kInfinity};
  std::vector<bfloat16_bits> narrow(values.size());
  std::vector<float> wide(values.size());
  device->narrow(narrow.data(), values.data(), 4);
  device->widen(wide.data(), narrow.data(), 4);
  EXPECT_EQ(wide, values);
}

}  // namespace
}  // namespace dtrain::backend::cuda
