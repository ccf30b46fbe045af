#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include <dtrain/net/addresses.hpp>
#include <dtrain/net/socket_address.hpp>
#include <dtrain/net/stream.hpp>

#include "net/running_port.hpp"

namespace dtrain::net {
namespace {

// Containers often have no IPv6.
bool has_address(const std::string& address) {
  const SocketAddress place(address, 0);
  const FileDescriptor socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), place.get(), place.size()) == 0;
}

TEST(Listener, HandsOverNobodyWithAnotherSecret) {
  Port port;
  EXPECT_THROW(port.connect("other"), RemoteError);
  EXPECT_TRUE(port.accepted.stays_empty());
  port.connect();
  port.accepted.take();
}

TEST(Listener, AtAllAddressesIsReachedByIpv4AndIpv6) {
  RunningLoop running;
  Mailbox<ChannelPtr> accepted;
  const Listener listener(running.loop, kAnyAddress, "token", [&](ChannelPtr channel) { accepted.put(channel); });
  EXPECT_EQ(listener.address(), kAnyAddress);
  for (const std::string address : {"127.0.0.1", "::1"}) {
    if (!has_address(address)) continue;
    const ChannelPtr ours = connect_channel(running.loop, address, listener.port(), "token", 60s);
    EXPECT_EQ(ours->peer_address(), address);
    EXPECT_EQ(accepted.take()->peer_address(), address);
  }
  running.stop();
}

TEST(Listener, GivesStrangersNothingAndServesOthersMeanwhile) {
  Port port;
  const FileDescriptor silent = port.connect_as_stranger();
  const FileDescriptor web = port.connect_as_stranger();
  write_raw(web, "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: */*\r\nUser-Agent: a stranger\r\n\r\n");
  const FileDescriptor garbage = port.connect_as_stranger();
  write_raw(garbage, std::string(1 << 20, '\xff'));
  // A stranger gets an alert of TLS at most: why, in seven bytes.
  EXPECT_LE(read_raw(web).size(), 7u);
  EXPECT_LE(read_raw(garbage).size(), 7u);
  port.connect();
  port.accepted.take();
}

// The first message of somebody who guesses.
std::string client_hello() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Stream guess{FileDescriptor{ends[0]}, Role::connected, {"guess", "control"}};
  const FileDescriptor other(ends[1]);
  guess.shake_hands();
  std::string bytes(4096, '\0');
  bytes.resize(static_cast<std::size_t>(::recv(other.get(), bytes.data(), bytes.size(), 0)));
  return bytes;
}

TEST(Listener, SurvivesAnyBytesBeforeTheProof) {
  Port port;
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const FileDescriptor stranger = port.connect_as_stranger();
    std::string opening = client_hello();
    opening.resize(random() % opening.size());
    write_raw(stranger, i % 2 == 0 ? random_bytes(random) : opening + random_bytes(random));
  }
  EXPECT_TRUE(port.accepted.stays_empty());
  port.connect();
  port.accepted.take();
}

TEST(Listener, IsNotFilledUpByStrangersThatSayNothing) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Port port;
  const std::size_t before = open_descriptors();
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 1000; ++i) strangers.push_back(port.connect_as_stranger());
  for (int i = 0; i < 3; ++i) {
    const auto member = port.connect();
    port.accepted.take();
  }
  EXPECT_LE(open_descriptors(), before + strangers.size() + 300) << "the port keeps at most 256 of them";
}

// Takes every descriptor that this process may still have.
std::vector<FileDescriptor> take_all_descriptors() {
  std::vector<FileDescriptor> taken;
  while (FileDescriptor next{::dup(STDERR_FILENO)}) taken.push_back(std::move(next));
  return taken;
}

TEST(Listener, ServesAgainOnceTheProcessHasDescriptors) {
  Port port;
  rlimit usual{};
  ::getrlimit(RLIMIT_NOFILE, &usual);
  const FileDescriptor highest(::dup(STDERR_FILENO));
  const rlimit few{static_cast<rlim_t>(highest.get()) + 20, usual.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  auto taken = take_all_descriptors();
  taken.pop_back();
  const FileDescriptor stranger = port.connect_as_stranger();  // the port has none to accept it
  for (const auto end = std::chrono::steady_clock::now() + 500ms; std::chrono::steady_clock::now() < end;) {
    if (FileDescriptor freed{::dup(STDERR_FILENO)}) taken.push_back(std::move(freed));
    std::this_thread::sleep_for(1ms);
  }
  taken.clear();
  ::setrlimit(RLIMIT_NOFILE, &usual);
  const auto member = port.connect();
  EXPECT_NE(port.accepted.take(), nullptr);
}

TEST(Listener, ServesACrowdThatComesAtOnce) {
  Port port;
  std::vector<std::future<ChannelPtr>> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(std::async(std::launch::async, [&] { return port.connect(); }));
  for (auto& member : crowd) EXPECT_NE(member.get(), nullptr);
  for (int i = 0; i < 100; ++i) EXPECT_NE(port.accepted.take(), nullptr);
}

TEST(Listener, FreesItsPortAndRefusesEverybodyOnceItIsGone) {
  RunningLoop running;
  auto listener = std::make_unique<Listener>(running.loop, "127.0.0.1", "token", [](ChannelPtr) {});
  const auto port = listener->port();
  listener = nullptr;
  running.settle();
  running.settle();
  EXPECT_THROW(connect_channel(running.loop, "127.0.0.1", port, "token", 10s), RemoteError);
}

TEST(Listener, SpeaksIPv6) {
  RunningLoop running;
  std::unique_ptr<Listener> listener;
  Mailbox<ChannelPtr> accepted;
  try {
    listener =
        std::make_unique<Listener>(running.loop, "::1", "token", [&](ChannelPtr c) { accepted.put(std::move(c)); });
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  const auto ours = connect_channel(running.loop, "::1", listener->port(), "token", 60s);
  EXPECT_EQ(ours->local_address(), "::1");
  EXPECT_EQ(accepted.take()->peer_address(), "::1");
}

TEST(Listener, TellsAnAddressThatIsNotOfThisMachine) {
  RunningLoop running;
  EXPECT_THROW(Listener(running.loop, "192.0.2.1", "token", [](ChannelPtr) {}), Error);
  EXPECT_THROW(Listener(running.loop, "localhost", "token", [](ChannelPtr) {}), UsageError);
}

TEST(Listener, RefusesAPeerThatProvesItselfForAnotherKindOfPort) {
  Port port;
  Stream other(port.connect_as_stranger(), Role::connected, {"token", "data"});
  EXPECT_THROW(shake_hands(other, StreamClock::now() + 10s), RemoteError);
  EXPECT_TRUE(port.accepted.stays_empty());
}

}  // namespace
}  // namespace dtrain::net
