#include <dtrain/backend/loss_scale.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::backend {
namespace {

LossScale after_good(LossScale scale, int steps) {
  for (int step = 0; step < steps; ++step) scale = after_step(scale, false);
  return scale;
}

TEST(LossScale, HalvesWithAnOverflowAndDoublesAfter2000StepsWithout) {
  const LossScale first;
  EXPECT_EQ(after_step(first, true), (LossScale{first.value / 2, 0}));
  EXPECT_EQ(after_good(first, 1999), (LossScale{first.value, 1999}));
  EXPECT_EQ(after_good(first, 2000), (LossScale{first.value * 2, 0}));
  EXPECT_EQ(after_good(after_step(after_good(first, 1999), true), 1999).value, first.value / 2);
}

TEST(LossScale, DoesNotGrowBeyondWhatTheLossItselfAllows) { EXPECT_EQ(after_good({0x1p15f, 0}, 4000).value, 0x1p15f); }

TEST(LossScale, GivesUpWhereNothingIsLeftToHalve) { EXPECT_THROW(after_step({0x1p-14f, 3}, true), Error); }

}  // namespace
}  // namespace dtrain::backend
