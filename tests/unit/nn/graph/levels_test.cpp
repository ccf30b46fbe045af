#include <gtest/gtest.h>

#include <dtrain/nn/detection.hpp>

namespace dtrain::nn {
namespace {

TEST(Levels, lie_beside_and_below_each_other_with_a_gap) {
  const Levels levels{.count = 3, .height = 5, .width = 8};
  const std::vector<LevelPlace> places = level_places(levels);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[1].left, 9);
  EXPECT_EQ(places[1].height, 3);
  EXPECT_EQ(places[1].width, 4);
  EXPECT_EQ(places[2].top, 4);
  EXPECT_EQ(places[2].height, 2);
  const Extent extent = extent_of(levels);
  EXPECT_EQ(extent.height, 6);
  EXPECT_EQ(extent.width, 13);
}

}  // namespace
}  // namespace dtrain::nn
