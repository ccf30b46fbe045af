#include <gtest/gtest.h>

#include <dtrain/base/base64.hpp>

namespace dtrain {
namespace {

// RFC 4648, section 10.
TEST(Base64, GivesBackWhatItTook) {
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(from_base64("Zm9v\nYmE=\n"), "fooba");
  EXPECT_EQ(from_base64(base64(std::string("\0\xff\x80", 3))), std::string("\0\xff\x80", 3));
}

}  // namespace
}  // namespace dtrain
