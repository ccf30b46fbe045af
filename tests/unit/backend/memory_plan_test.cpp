#include "memory_plan.hpp"

#include <gtest/gtest.h>

namespace dtrain::backend {
namespace {

TEST(MemoryPlan, TensorsThatLiveTogetherLieApart) {
  const Places places = plan_places({{100, 0, 2}, {64, 1, 3}, {64, 3, 4}}, 64);
  EXPECT_EQ(places.offsets, (std::vector<std::size_t>{0, 128, 0}));
  EXPECT_EQ(places.bytes, 192u);
}

TEST(MemoryPlan, AGapBetweenTwoNeighboursIsUsed) {
  const Places places = plan_places({{256, 0, 9}, {128, 0, 1}, {192, 0, 9}, {64, 2, 3}}, 64);
  EXPECT_EQ(places.bytes, 256u + 192u + 128u);
  EXPECT_EQ(places.offsets[3], places.offsets[1]);
}

}  // namespace
}  // namespace dtrain::backend
