#include "aws/rules.hpp"

#include <gtest/gtest.h>

namespace dtrain::cluster {
namespace {

TEST(Rules, KnowABlockWhateverItsHostBits) {
  EXPECT_TRUE(is_same_block("203.0.113.7/24", "203.0.113.0/24"));
  EXPECT_TRUE(is_same_block("2001:db8::7/64", "2001:DB8:0:0::/64"));
  EXPECT_TRUE(is_same_block("0.0.0.0/0", "1.2.3.4/0"));
  EXPECT_FALSE(is_same_block("203.0.113.0/24", "203.0.113.0/25"));
  EXPECT_FALSE(is_same_block("203.0.113.7/32", "203.0.113.8/32"));
  EXPECT_FALSE(is_same_block("pl-123", "0.0.0.0/0"));
}

}  // namespace
}  // namespace dtrain::cluster
