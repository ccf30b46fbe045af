#include "memory_plan.hpp"

#include <gtest/gtest.h>

#include "program.hpp"

namespace dtrain::backend::cpu {
namespace {

TEST(MemoryPlan, TensorsThatLiveTogetherLieApart) {
  const Places places = plan_places({{100, 0, 2}, {64, 1, 3}, {64, 3, 4}});
  EXPECT_EQ(places.offsets, (std::vector<std::size_t>{0, 128, 0}));
  EXPECT_EQ(places.bytes, 192u);
}

TEST(MemoryPlan, AGapBetweenTwoNeighboursIsUsed) {
  const Places places = plan_places({{256, 0, 9}, {128, 0, 1}, {192, 0, 9}, {64, 2, 3}});
  EXPECT_EQ(places.bytes, 256u + 192u + 128u);
  EXPECT_EQ(places.offsets[3], places.offsets[1]);
}

TEST(Chunks, CoverAllSamplesInSizesThatDifferByOne) {
  const Chunks chunks{64, 3};
  EXPECT_EQ(chunks.number(), 22);
  EXPECT_EQ(chunks.size(0), 3);
  EXPECT_EQ(chunks.size(21), 2);
  EXPECT_EQ(chunks.first(22), 64);
}

}  // namespace
}  // namespace dtrain::backend::cpu
