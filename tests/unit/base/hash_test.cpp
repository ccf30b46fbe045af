#include <dtrain/base/hash.hpp>

#include <gtest/gtest.h>

namespace dtrain {
namespace {

TEST(Sha256, GivesTheAnswersOfFips180) {
  EXPECT_EQ(sha256_hex(bytes_of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, DoesNotCareHowTheBytesArrive) {
  Sha256 hash;
  for (const char* part : {"a", "", "bc"}) hash.update(bytes_of(part));
  EXPECT_EQ(hash.hex(), sha256_hex(bytes_of("abc")));
}

TEST(Crc32c, GivesTheAnswersOfRfc3720) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
}

}  // namespace
}  // namespace dtrain
