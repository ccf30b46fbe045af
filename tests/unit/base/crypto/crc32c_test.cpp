#include <gtest/gtest.h>

#include <string>

#include <dtrain/base/hash.hpp>

namespace dtrain {
namespace {

TEST(Crc32c, GivesTheNumbersOfRfc3720) {
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(crc32c(bytes_of(text)), crc32c_portable(bytes_of(text))) << i << " bytes";
    text += static_cast<char>(i * 37);
  }
}

}  // namespace
}  // namespace dtrain
