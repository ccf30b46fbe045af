#include <gtest/gtest.h>

#include <dtrain/base/secret.hpp>

namespace dtrain {
namespace {

TEST(Secret, IsNeverTheSameTwice) {
  EXPECT_EQ(unpredictable_bytes(32).size(), 32u);
  EXPECT_NE(unpredictable_bytes(32), unpredictable_bytes(32));
}

TEST(Secret, EqualsOnlyItself) {
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "ab"));
}

TEST(Secret, IsWrittenAsHexDigits) { EXPECT_EQ(to_hex(std::string_view("\0\x7f\x80\xff", 4)), "007f80ff"); }

}  // namespace
}  // namespace dtrain
