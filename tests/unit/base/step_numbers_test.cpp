#include <dtrain/base/step_numbers.hpp>

#include <gtest/gtest.h>

namespace dtrain {
namespace {

// All steps of an epoch, of which `steps` are expected from the first one on; the number of the last one.
double add_epoch(StepNumbers& numbers, int epoch, int steps, std::uint32_t begins = 0) {
  double number = 0;
  for (int step = 0; step < steps; ++step) number = numbers.add(epoch, step, steps, begins);
  return number;
}

TEST(StepNumbers, OfEqualEpochsFollowFromTheStepAlone) {
  StepNumbers numbers;
  EXPECT_EQ(numbers.last_of(3), 0);
  EXPECT_EQ(numbers.add(7, 4, 10), 75) << "a run that begins inside it";
  EXPECT_EQ(numbers.add(8, 9, 10), 90);
  EXPECT_EQ(numbers.add(11, 0, 10), 111) << "the epochs between were not added";
  EXPECT_EQ(numbers.add(2, 5, 10), 26) << "before the first one";
  EXPECT_EQ(numbers.last_of(0), 10);
  EXPECT_EQ(numbers.last_of(11), 120);
}

TEST(StepNumbers, GoOnWhereAnEpochHasFewerStepsThanTheOneBefore) {
  StepNumbers numbers;
  EXPECT_EQ(add_epoch(numbers, 0, 30), 30);
  EXPECT_EQ(add_epoch(numbers, 1, 30), 60);
  EXPECT_EQ(add_epoch(numbers, 2, 15), 75);
  EXPECT_EQ(numbers.add(3, 0, 15), 76);
  EXPECT_EQ(add_epoch(numbers, 4, 40), 130);
  EXPECT_EQ(numbers.last_of(1), 60);
  EXPECT_EQ(numbers.last_of(2), 75);
  EXPECT_EQ(numbers.last_of(3), 90);
}

TEST(StepNumbers, GoOnWhereTheNumberOfStepsChangesInsideAnEpoch) {
  StepNumbers numbers;
  add_epoch(numbers, 0, 30);
  EXPECT_EQ(numbers.add(1, 9, 30), 40);
  EXPECT_EQ(numbers.add(1, 10, 20), 41) << "a worker joined";
  EXPECT_EQ(numbers.add(1, 19, 20), 50);
  EXPECT_EQ(numbers.add(2, 0, 15), 51);
  EXPECT_EQ(numbers.last_of(1), 50);
}

TEST(StepNumbers, OfAResumeGoBackToItsFirstStep) {
  StepNumbers numbers;
  add_epoch(numbers, 0, 10, 1);
  add_epoch(numbers, 1, 20, 1);
  add_epoch(numbers, 2, 40, 1);
  EXPECT_EQ(numbers.add(1, 5, 12, 2), 16);
  EXPECT_EQ(numbers.add(1, 11, 12, 2), 22);
  EXPECT_EQ(numbers.add(2, 0, 12, 2), 23);
  EXPECT_EQ(numbers.last_of(2), 34) << "as many as epoch 1 had, not as before the resume";
  EXPECT_EQ(numbers.add(0, 3, 10, 3), 4);
}

TEST(StepNumbers, OfAnEarlierTimeAreFoundAgain) {
  StepNumbers numbers;
  for (int epoch = 0; epoch < 6; ++epoch) add_epoch(numbers, epoch, 10, 1);
  add_epoch(numbers, 6, 7, 1);
  add_epoch(numbers, 2, 5, 2);
  EXPECT_EQ(numbers.add(5, 0, 5, 2), 36);
  StepNumbers before = numbers.as_of(1);
  EXPECT_EQ(before.add(3, 2, 10, 1), 33);
  EXPECT_EQ(before.add(4, 9, 10, 1), 50);
  EXPECT_EQ(before.add(6, 6, 7, 1), 67);
  EXPECT_EQ(before.add(2, 4, 5, 2), 25) << "up to the resume and behind it";
  EXPECT_EQ(before.add(3, 0, 5, 2), 26);
}

TEST(StepNumbers, BeginAtACheckpoint) {
  StepNumbers inside, at_end;
  inside.begin_at(4, 6, 106);
  EXPECT_EQ(inside.last_of(4), 106);
  EXPECT_EQ(inside.add(4, 6, 30), 107);
  EXPECT_EQ(inside.add(4, 29, 30), 130);
  EXPECT_EQ(inside.add(5, 0, 20), 131);
  at_end.begin_at(5, 0, 200);
  EXPECT_EQ(at_end.add(5, 0, 30), 201);
}

TEST(StepNumbers, OfARunThatChangesAllTheTimeTakeLittleMemory) {
  StepNumbers numbers;
  double number = 0;
  for (int epoch = 0; epoch < 100'000; ++epoch) number = numbers.add(epoch, epoch % 2, 1 + epoch % 2);
  EXPECT_EQ(number, 150'000);
}

}  // namespace
}  // namespace dtrain
