#include <dtrain/net/socket_address.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::net {
namespace {

TEST(SocketAddress, IsReadAndWrittenInBothKinds) {
  for (const char* const text : {"127.0.0.1", "0.0.0.0", "::", "::1", "fd00::7"}) {
    const SocketAddress address(text, 1234);
    EXPECT_EQ(address.address(), text);
    EXPECT_EQ(address.port(), 1234);
  }
  EXPECT_EQ(SocketAddress("10.0.0.7", 1).family(), AF_INET);
  EXPECT_EQ(SocketAddress("fd00::7", 1).family(), AF_INET6);
}

TEST(SocketAddress, TellsAnIpv4AddressInIpv6AsSuch) {
  EXPECT_EQ(SocketAddress("::ffff:10.0.0.7", 1).address(), "10.0.0.7");
}

TEST(SocketAddress, NamesTheCardOfALinkLocalAddress) {
  EXPECT_EQ(SocketAddress("fe80::1%lo", 1).address(), "fe80::1%lo");
  EXPECT_EQ(SocketAddress("fe80::1", 1).address(), "fe80::1");
}

TEST(SocketAddress, LooksUpNoNames) {
  for (const char* const text : {"", "localhost", "[::1]", "::1 ", "fd00::7::1"}) {
    EXPECT_THROW(SocketAddress(text, 1), UsageError) << text;
  }
}

TEST(SocketAddress, OfASocketThatHasNoneIsEmpty) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const FileDescriptor one(ends[0]), other(ends[1]);
  EXPECT_EQ(SocketAddress::own_of(one.get()).address(), "");
  EXPECT_EQ(SocketAddress::own_of(one.get()).size(), 0u);
  EXPECT_EQ(SocketAddress::peer_of(one.get()).family(), AF_UNSPEC);
  EXPECT_EQ(SocketAddress::peer_of(one.get()).port(), 0);
  EXPECT_EQ(SocketAddress::own_of(-1).size(), 0u);
}

}  // namespace
}  // namespace dtrain::net
