#include "epoch_progress.hpp"

#include <gtest/gtest.h>

namespace dtrain::plot {
namespace {

TEST(EpochProgress, IsTheQuotientWhereStepsAreEqual) {
  EpochProgress progress;
  EXPECT_DOUBLE_EQ(progress.add(0, 9, 100), 0.1);
  EXPECT_EQ(progress.add(0, 99, 100), 1);
  EXPECT_DOUBLE_EQ(progress.add(1, 24, 50), 1.5) << "an epoch with another number of steps";
}

// A worker of two leaves behind 10 of 30 steps: 40 are left.
TEST(EpochProgress, SharesWhatWasLeftWhereAWorkerLeaves) {
  EpochProgress progress;
  EXPECT_DOUBLE_EQ(progress.add(3, 9, 30), 3 + 1 / 3.0);
  EXPECT_DOUBLE_EQ(progress.add(3, 29, 50), 3 + 2 / 3.0) << "and not 30/50";
  EXPECT_DOUBLE_EQ(progress.add(3, 39, 45), 3 + 2 / 3.0 + 1 / 3.0 * 10 / 15) << "it came back";
  EXPECT_EQ(progress.add(3, 44, 45), 4);
}

TEST(EpochProgress, OfAResumeGoesOnWhereItStood) {
  EpochProgress progress;
  progress.add(0, 9, 30, 1);
  EXPECT_DOUBLE_EQ(progress.add(0, 29, 50, 2), 2 / 3.0);
  EXPECT_DOUBLE_EQ(progress.add(0, 21, 35, 3), 31 / 60.0 + 29 / 60.0 / 14) << "or further back, at step 21";
}

TEST(EpochProgress, DoesNotGoBackWithLostServers) {
  EpochProgress progress;
  const double before = progress.add(0, 19, 30);
  EXPECT_EQ(progress.add(0, 14, 30), before);
  EXPECT_GT(progress.add(0, 20, 30), before);
}

}  // namespace
}  // namespace dtrain::plot
