#include <gtest/gtest.h>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>

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

TEST(HmacSha256, GivesTheAnswersOfRfc4231) {
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Xxh128, GivesTheAnswersOfItsAuthors) {
  const auto hex = [](std::string_view text) {
    const Xxh128 hash = xxh128(bytes_of(text));
    return to_hex({reinterpret_cast<const char*>(hash.data()), hash.size()});
  };
  EXPECT_EQ(hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Crc32c, GivesTheAnswersOfRfc3720) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
}

}  // namespace
}  // namespace dtrain
