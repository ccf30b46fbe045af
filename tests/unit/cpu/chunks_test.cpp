#include <gtest/gtest.h>

#include "program.hpp"

namespace dtrain::backend::cpu {
namespace {

TEST(Chunks, CoverAllSamplesInSizesThatDifferByOne) {
  const Chunks chunks{64, 3};
  EXPECT_EQ(chunks.number(), 22);
  EXPECT_EQ(chunks.size(0), 3);
  EXPECT_EQ(chunks.size(21), 2);
  EXPECT_EQ(chunks.first(22), 64);
}

}  // namespace
}  // namespace dtrain::backend::cpu
