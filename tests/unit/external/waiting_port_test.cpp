#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "leased_ports.hpp"
#include "waiting_port.hpp"

namespace dtrain::external {
namespace {

const std::string kThisHost = "127.0.0.1";

sockaddr_in place_of(std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  ::inet_pton(AF_INET, kThisHost.c_str(), &place.sin_addr);
  return place;
}

FileDescriptor call(std::uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in place = place_of(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) return {};
  return socket;
}

FileDescriptor open_port(std::uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in place = place_of(port);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  EXPECT_EQ(::listen(socket.get(), 8), 0);
  return socket;
}

FileDescriptor accept_from(const FileDescriptor& listener) {
  return FileDescriptor(::accept(listener.get(), nullptr, nullptr));
}

void say(const FileDescriptor& socket, std::string_view text) {
  EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

std::string hear(const FileDescriptor& socket, std::size_t size) {
  std::string text(size, '\0');
  const ssize_t got = ::recv(socket.get(), text.data(), size, MSG_WAITALL);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

class WaitingPortTest : public ::testing::Test {
 protected:
  LeasedPorts leased_{kThisHost, 1};
  const std::uint16_t behind_ = leased_.numbers().front();
  WaitingPort port_{kThisHost, behind_, 8};
};

TEST_F(WaitingPortTest, LetsInWhoCallsBeforeTheProgramHasOpenedItsPort) {
  const FileDescriptor early = call(port_.port());
  ASSERT_TRUE(early);
  say(early, "ping");
  EXPECT_FALSE(call(behind_));
  const FileDescriptor program = open_port(behind_);
  const FileDescriptor joined = accept_from(program);
  EXPECT_EQ(hear(joined, 4), "ping");
  say(joined, "pong!");
  EXPECT_EQ(hear(early, 5), "pong!");
}

TEST_F(WaitingPortTest, KeepsEveryCallerApart) {
  const FileDescriptor program = open_port(behind_);
  const FileDescriptor first = call(port_.port());
  say(first, "1");
  const FileDescriptor to_first = accept_from(program);
  const FileDescriptor second = call(port_.port());
  say(second, "2");
  const FileDescriptor to_second = accept_from(program);
  EXPECT_EQ(hear(to_second, 1), "2");
  EXPECT_EQ(hear(to_first, 1), "1");
}

TEST_F(WaitingPortTest, CarriesMoreThanEitherSideHolds) {
  const FileDescriptor program = open_port(behind_);
  const FileDescriptor caller = call(port_.port());
  const FileDescriptor joined = accept_from(program);
  std::string much(20 << 20, 'a');
  for (std::size_t i = 0; i < much.size(); i += 4099) much[i] = static_cast<char>(i);
  std::jthread saying([&] { say(caller, much); });
  EXPECT_TRUE(hear(joined, much.size()) == much);
}

TEST_F(WaitingPortTest, TellsTheOtherSideOfAnEnd) {
  const FileDescriptor program = open_port(behind_);
  FileDescriptor caller = call(port_.port());
  FileDescriptor joined = accept_from(program);
  caller = {};
  EXPECT_EQ(hear(joined, 1), "");
  caller = call(port_.port());
  joined = accept_from(program);
  joined = {};
  EXPECT_EQ(hear(caller, 1), "");
}

TEST_F(WaitingPortTest, SaysWhetherItWasCalled) {
  EXPECT_FALSE(port_.was_called());
  const FileDescriptor early = call(port_.port());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!port_.was_called() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(port_.was_called());
}

TEST_F(WaitingPortTest, ForwardsOnlySoManyConnectionsAtATime) {
  const FileDescriptor program = open_port(behind_);
  WaitingPort narrow(kThisHost, behind_, 1);
  FileDescriptor first = call(narrow.port());
  FileDescriptor joined = accept_from(program);
  say(joined, "1");
  EXPECT_EQ(hear(first, 1), "1");
  const FileDescriptor second = call(narrow.port());
  say(second, "2");
  pollfd another{program.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&another, 1, 200), 0) << "the second came too";
  first = {};
  joined = {};
  EXPECT_EQ(hear(accept_from(program), 1), "2");
}

TEST_F(WaitingPortTest, ClosesThoseWithoutAnAnswerWhereMoreCome) {
  const FileDescriptor program = open_port(behind_);
  WaitingPort narrow(kThisHost, behind_, 2);
  const FileDescriptor member = call(narrow.port());
  const FileDescriptor to_member = accept_from(program);
  say(to_member, "1");
  EXPECT_EQ(hear(member, 1), "1");
  for (int i = 0; i < 20; ++i) {
    const FileDescriptor stranger = call(narrow.port());
    accept_from(program);
    const FileDescriptor next = call(narrow.port());
    accept_from(program);
    EXPECT_EQ(hear(stranger, 1), "");
  }
  say(member, "2");
  EXPECT_EQ(hear(to_member, 1), "2");
}

TEST_F(WaitingPortTest, ACallerThatDoesNotReadDelaysNoOther) {
  const FileDescriptor program = open_port(behind_);
  const FileDescriptor slow = call(port_.port());
  const FileDescriptor to_slow = accept_from(program);
  const std::string much(64 << 20, 'a');
  std::jthread saying([&] { ::send(to_slow.get(), much.data(), much.size(), MSG_NOSIGNAL); });
  const FileDescriptor other = call(port_.port());
  const FileDescriptor to_other = accept_from(program);
  say(to_other, "now");
  EXPECT_EQ(hear(other, 3), "now");
  ::shutdown(slow.get(), SHUT_RDWR);
  ::shutdown(to_slow.get(), SHUT_RDWR);
}

TEST_F(WaitingPortTest, EndsWhileSomebodyWaits) {
  FileDescriptor early;
  {
    WaitingPort other(kThisHost, behind_, 8);
    early = call(other.port());
    ASSERT_TRUE(early);
  }
  EXPECT_EQ(hear(early, 1), "");
}

}  // namespace
}  // namespace dtrain::external
