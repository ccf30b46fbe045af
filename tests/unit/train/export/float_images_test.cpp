#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

#include "common/byte_problem.hpp"
#include "export/float_images.hpp"

namespace dtrain::train {
namespace {

TEST(FloatImages, AreWhatBytesStandFor) {
  const testing::ByteProblem problem(nn::build_network({.name = "lenet", .image = {1, 28, 28}}), 3);
  std::vector<float> room;
  const float* const images = float_images(problem.batch(), {1, 28, 28}, room);
  EXPECT_EQ(std::vector<float>(images, images + std::ssize(problem.floats.images)), problem.floats.images);
}

TEST(FloatImages, AreTheBatchsOwnWhereItHasThem) {
  const testing::ByteProblem problem(nn::build_network({.name = "lenet", .image = {1, 28, 28}}), 3);
  std::vector<float> room;
  EXPECT_EQ(float_images(problem.floats.batch(), {1, 28, 28}, room), problem.floats.images.data());
}

}  // namespace
}  // namespace dtrain::train
