#include "caller.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <dtrain/base/files.hpp>

namespace dtrain::board {
namespace {

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1777 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1\n"
    "   1: 0100007F:D431 0100007F:1777 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n"
    "   2: 0200007F:D431 0100007F:1777 01 00000000:00000000 00:00000000 00000000  1001        0 3 1\n"
    "   3: 0100007F:D432 0100007F:1777 01 00000000:00000000 00:00000000 00000000     0        0 4 1\n"
    "   0: 0000000000000000FFFF00000100007F:D433 0000000000000000FFFF00000100007F:1777 01 00000000:00000000 "
    "00:00000000 00000000  1001        0 5 1\n"
    "   1: 00000000000000000000000001000000:D434 00000000000000000000000001000000:1777 01 00000000:00000000 "
    "00:00000000 00000000  1000        0 6 1\n";

TEST(Caller, IsTheUserOfTheOtherEnd) {
  EXPECT_TRUE(is_of_user(kTable, {"127.0.0.1", 0xD431, 0x1777}, 1000));
  EXPECT_FALSE(is_of_user(kTable, {"127.0.0.2", 0xD431, 0x1777}, 1000)) << "the same port of another address";
  EXPECT_FALSE(is_of_user(kTable, {"127.0.0.1", 0xD431, 0x1777}, 1001));
  EXPECT_TRUE(is_of_user(kTable, {"127.0.0.1", 0xD432, 0x1777}, 1000)) << "root";
  EXPECT_FALSE(is_of_user(kTable, {"127.0.0.1", 0xD433, 0x1777}, 1000)) << "IPv4 in a socket of IPv6";
  EXPECT_TRUE(is_of_user(kTable, {"::1", 0xD434, 0x1777}, 1000));
  EXPECT_TRUE(is_of_user(kTable, {"::ffff:127.0.0.1", 0xD431, 0x1777}, 1000)) << "a port of both kinds";
  EXPECT_TRUE(is_of_user(kTable, {"::ffff:127.0.0.1", 0xD433, 0x1777}, 1001)) << "a port of both kinds";
}

// The kernel shows it as one of root, without an inode: its process may be that of any user.
TEST(Caller, ThatHasClosedItsSocketIsNobody) {
  constexpr const char* kClosed =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:D431 0100007F:1777 05 00000000:00000000 00:00000000 00000000     0        0 0 2 0\n";
  EXPECT_FALSE(is_of_user(kClosed, {"127.0.0.1", 0xD431, 0x1777}, 1000));
  EXPECT_FALSE(is_of_user(kClosed, {"127.0.0.1", 0xD431, 0x1777}, 0));
}

TEST(Caller, WithoutASocketIsRefused) {
  EXPECT_FALSE(is_of_user(kTable, {"127.0.0.1", 0xD440, 0x1777}, 1000));
  EXPECT_FALSE(is_of_user("", {"127.0.0.1", 0xD431, 0x1777}, 1000));
  EXPECT_FALSE(is_of_user("damaged\n 1: x\n", {"nowhere", 1, 2}, 1000));
}

// A connection to itself over loopback, of this process; `calls` is the end that called.
struct Connected {
  Connected() : listens(::socket(AF_INET, SOCK_STREAM, 0)), calls(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&here);
    socklen_t size = sizeof here;
    EXPECT_EQ(::bind(listens.get(), name, size), 0);
    EXPECT_EQ(::listen(listens.get(), 1), 0);
    ::getsockname(listens.get(), name, &size);
    place = {.address = "127.0.0.1", .called_port = ntohs(here.sin_port)};
    EXPECT_EQ(::connect(calls.get(), name, size), 0);
    ::getsockname(calls.get(), name, &size);
    place.port = ntohs(here.sin_port);
  }
  FileDescriptor listens, calls;
  CallerPlace place;
};

TEST(OwnCallers, HaveOpenSockets) {
  Connected connected;
  EXPECT_TRUE(is_own_caller(connected.place));
  connected.calls = FileDescriptor();
  EXPECT_FALSE(is_own_caller(connected.place)) << "whoever it was is gone";
}

TEST(OwnCallers, AreAskedForOncePerConnection) {
  const CallerPlace nowhere{.address = "127.0.0.1", .port = 1, .called_port = 1};
  const Connected connected;
  OwnCallers callers;
  EXPECT_FALSE(callers.has(1, nowhere));
  EXPECT_TRUE(callers.has(2, connected.place));
  EXPECT_TRUE(callers.has(2, nowhere)) << "the kernel was asked again";
  EXPECT_FALSE(callers.has(3, nowhere)) << "another connection took the verdict over";
}

}  // namespace
}  // namespace dtrain::board
