#include <dtrain/net/addresses.hpp>

#include <gtest/gtest.h>

namespace dtrain::net {
namespace {

TEST(Addresses, OfTheLoopback) {
  for (const char* const address : {"127.0.0.1", "127.0.0.2", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(address)) << address;
  for (const char* const address : {"", "128.0.0.1", "10.0.0.1", "127.example", "::2", "0.0.0.0", "localhost", "::"})
    EXPECT_FALSE(is_loopback(address)) << address;
}

TEST(Addresses, ThatAreAllOfThem) {
  for (const char* const address : {"0.0.0.0", "::", "0::0"}) EXPECT_TRUE(is_any_address(address)) << address;
  for (const char* const address : {"", "127.0.0.1", "::1", "0.0.0.1"})
    EXPECT_FALSE(is_any_address(address)) << address;
}

TEST(Addresses, OfALinkAlone) {
  for (const char* const address : {"fe80::1", "fe80::1%eth0"}) EXPECT_TRUE(is_link_local(address)) << address;
  for (const char* const address : {"", "::1", "fd00::1", "10.0.0.1", "169.254.1.1"})
    EXPECT_FALSE(is_link_local(address)) << address;
}

TEST(Addresses, StandInBracketsWhereTheyHaveColons) {
  EXPECT_EQ(in_brackets("::1"), "[::1]");
  EXPECT_EQ(in_brackets("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace dtrain::net
