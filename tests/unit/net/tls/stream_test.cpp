#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/net/stream.hpp>

#include "tls/context.hpp"

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;

const StreamKey kKey{"the token of this job", "data"};

struct Sockets {
  FileDescriptor connected, accepted;
  Sockets() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    connected = FileDescriptor(ends[0]);
    accepted = FileDescriptor(ends[1]);
  }
};

StreamClock::time_point soon() { return StreamClock::now() + 10s; }

struct Pair {
  Stream connected, accepted;
};

// Both ends after their handshake, over sockets that may lead through a relay.
Pair shake_hands_of(FileDescriptor connected, FileDescriptor accepted, const StreamLimits& limits = {}) {
  Pair pair{Stream(std::move(connected), Role::connected, kKey, limits),
            Stream(std::move(accepted), Role::accepted, kKey, limits)};
  auto peer = std::async(std::launch::async, [&] { shake_hands(pair.connected, soon()); });
  shake_hands(pair.accepted, soon());
  peer.get();
  return pair;
}

Pair make_pair_of(const StreamLimits& limits = {}) {
  Sockets sockets;
  return shake_hands_of(std::move(sockets.connected), std::move(sockets.accepted), limits);
}

// Why each side gave up; empty: it did not.
std::pair<std::string, std::string> refusals(const StreamKey& connected_key, const StreamKey& accepted_key) {
  Sockets sockets;
  const auto try_it = [](FileDescriptor socket, Role role, const StreamKey& key) -> std::string {
    try {
      Stream stream(std::move(socket), role, key);
      shake_hands(stream, soon());
      return {};
    } catch (const RemoteError& error) {
      return error.what();
    }
  };
  auto peer = std::async(std::launch::async, try_it, std::move(sockets.connected), Role::connected, connected_key);
  std::string accepted = try_it(std::move(sockets.accepted), Role::accepted, accepted_key);
  return {peer.get(), accepted};
}

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 253);
  return bytes;
}

// Carries bytes between an outer and an inner pair of sockets, and lets a test look at them and change them.
class Relay {
 public:
  using Touch = std::function<void(std::string& bytes, bool from_connected)>;
  explicit Relay(Touch touch) : touch_(std::move(touch)) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested() && carry()) {
      }
    });
  }
  Pair shake_hands() { return shake_hands_of(std::move(left_.connected), std::move(right_.accepted)); }
  void inject(const std::string& bytes) { ::send(right_.connected.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

 private:
  bool carry() {
    pollfd entries[2] = {{left_.accepted.get(), POLLIN, 0}, {right_.connected.get(), POLLIN, 0}};
    ::poll(entries, 2, 20);
    for (int side = 0; side < 2; ++side) {
      if ((entries[side].revents & (POLLIN | POLLHUP)) == 0) continue;
      std::string bytes(64 << 10, '\0');
      const ssize_t got = ::recv(entries[side].fd, bytes.data(), bytes.size(), 0);
      if (got <= 0) return false;
      bytes.resize(static_cast<std::size_t>(got));
      touch_(bytes, side == 0);
      ::send(entries[1 - side].fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    return true;
  }

  Touch touch_;
  Sockets left_, right_;
  std::jthread thread_;
};

TEST(Stream, CarriesBytesBothWays) {
  Pair pair = make_pair_of();
  EXPECT_TRUE(pair.accepted.is_encrypted());
  write_all(pair.connected, "from connected", soon());
  write_all(pair.accepted, "from accepted", soon());
  EXPECT_EQ(read_exactly(pair.accepted, 14, soon()), "from connected");
  EXPECT_EQ(read_exactly(pair.connected, 13, soon()), "from accepted");
}

void continue_in_bulk(Pair& pair) {
  pair.connected.continue_in_bulk();
  pair.accepted.continue_in_bulk();
}

TEST(Stream, CarriesMegabytesInOrder) {
  const std::string sent = pattern(9'000'001);
  for (const bool in_bulk : {false, true}) {
    Pair pair = make_pair_of();
    if (in_bulk) continue_in_bulk(pair);
    auto peer = std::async(std::launch::async, [&] { write_all(pair.connected, sent, soon()); });
    EXPECT_TRUE(read_exactly(pair.accepted, sent.size(), soon()) == sent);
    peer.get();
  }
}

class KeyChanges : public testing::TestWithParam<bool> {};

TEST_P(KeyChanges, LoseNoByte) {
  Pair pair = make_pair_of({.records_of_one_key = 3});
  if (GetParam()) continue_in_bulk(pair);
  const std::string sent = pattern(2'000'000);
  for (Stream* from : {&pair.connected, &pair.accepted}) {
    Stream& to = from == &pair.connected ? pair.accepted : pair.connected;
    auto peer = std::async(std::launch::async, [&] { write_all(*from, sent, soon()); });
    EXPECT_TRUE(read_exactly(to, sent.size(), soon()) == sent);
    peer.get();
  }
}

INSTANTIATE_TEST_SUITE_P(OfTlsAndOfBulk, KeyChanges, testing::Bool());

TEST(Stream, GoesOnInBulkWithoutLosingAByte) {
  Pair pair = make_pair_of();
  write_all(pair.accepted, "!", soon());
  pair.accepted.continue_in_bulk();
  write_all(pair.accepted, "in bulk", soon());
  EXPECT_EQ(read_exactly(pair.connected, 1, soon()), "!");
  pair.connected.continue_in_bulk();
  EXPECT_EQ(read_exactly(pair.connected, 7, soon()), "in bulk");
  EXPECT_TRUE(pair.connected.is_encrypted());
}

TEST(Stream, GoesOnPlainWithoutLosingAByte) {
  Pair pair = make_pair_of();
  write_all(pair.connected, "?", soon());
  EXPECT_EQ(read_exactly(pair.accepted, 1, soon()), "?");
  write_all(pair.accepted, "!", soon());
  pair.accepted.continue_plain();
  write_all(pair.accepted, "plain", soon());
  EXPECT_EQ(read_exactly(pair.connected, 1, soon()), "!");
  pair.connected.continue_plain();
  EXPECT_EQ(read_exactly(pair.connected, 5, soon()), "plain");
  EXPECT_FALSE(pair.connected.is_encrypted());
}

TEST(Stream, RefusesAnotherSecretAndSaysSoToBothSides) {
  const auto [connected, accepted] = refusals({"guess", "data"}, kKey);
  EXPECT_NE(accepted.find("does not know the job's token"), std::string::npos) << accepted;
  EXPECT_NE(connected.find("another token"), std::string::npos) << connected;
}

TEST(Stream, RefusesAnotherPurpose) {
  const auto [connected, accepted] = refusals({kKey.secret, "control"}, kKey);
  EXPECT_NE(accepted, "");
  EXPECT_NE(connected.find("another kind of port"), std::string::npos) << connected;
  EXPECT_THROW(Stream(FileDescriptor(), Role::accepted, {"", "data"}), UsageError);
}

TEST(Stream, RefusesAPeerThatSpeaksSomethingElse) {
  for (const Role role : {Role::accepted, Role::connected}) {
    Sockets sockets;
    const std::string request = "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: */*\r\n\r\n";
    ASSERT_GT(::send(sockets.connected.get(), request.data(), request.size(), 0), 0);
    Stream stream(std::move(sockets.accepted), role, kKey);
    EXPECT_THROW(shake_hands(stream, soon()), RemoteError);
  }
}

TEST(Stream, EndsAtTheDeadlineWhenThePeerIsSilentAndAtOnceWhenItIsGone) {
  Sockets silent, gone;
  Stream stream(std::move(silent.accepted), Role::accepted, kKey);
  EXPECT_THROW(shake_hands(stream, StreamClock::now() + 50ms), RemoteError);
  gone.connected = FileDescriptor();
  Stream lonely(std::move(gone.accepted), Role::connected, kKey);
  EXPECT_THROW(shake_hands(lonely, soon()), RemoteError);
}

// A listener or a meddler between both ends, in the records of TLS and in those that follow them.
class Between : public testing::TestWithParam<bool> {
 protected:
  static Pair shake_hands(Relay& relay) {
    Pair pair = relay.shake_hands();
    if (GetParam()) continue_in_bulk(pair);
    return pair;
  }
};
INSTANTIATE_TEST_SUITE_P(OfTlsAndOfBulk, Between, testing::Bool());

TEST_P(Between, HidesWhatItCarriesFromAListener) {
  std::string seen;
  Relay relay([&](std::string& bytes, bool) { seen += bytes; });
  Pair pair = shake_hands(relay);
  const std::string secret = "aws_secret_access_key=wJalrXUtnFEMI";
  write_all(pair.connected, secret, soon());
  EXPECT_EQ(read_exactly(pair.accepted, secret.size(), soon()), secret);
  EXPECT_EQ(seen.find("aws_secret"), std::string::npos);
  EXPECT_EQ(seen.find(kKey.secret), std::string::npos);
}

TEST_P(Between, EndsWhenARelayChangesAByte) {
  std::atomic<bool> change{false};
  Relay relay([&](std::string& bytes, bool from_connected) {
    if (change && from_connected) bytes.back() = static_cast<char>(bytes.back() ^ 1);
  });
  Pair pair = shake_hands(relay);
  change = true;
  write_all(pair.connected, "launch nothing", soon());
  EXPECT_THROW(read_exactly(pair.accepted, 1, soon()), RemoteError);
}

TEST_P(Between, EndsWhenARelayAddsARecordOrRepeatsOne) {
  std::string last;
  for (const bool repeats : {false, true}) {
    Relay relay([&](std::string& bytes, bool from_connected) {
      if (from_connected) last = bytes;
    });
    Pair pair = shake_hands(relay);
    write_all(pair.connected, "first", soon());
    EXPECT_EQ(read_exactly(pair.accepted, 5, soon()), "first");
    relay.inject(repeats ? last
                         : std::string("\x04\0\0\0gate"
                                       "a tag of sixteen",
                                       24));
    EXPECT_THROW(read_exactly(pair.accepted, 1, soon()), RemoteError);
  }
}

TEST_P(Between, EndsWhenARelayDropsARecordOrExchangesTwo) {
  for (const bool exchanges : {false, true}) {
    std::atomic<bool> meddles{false};
    std::string kept;
    Relay relay([&](std::string& bytes, bool from_connected) {
      if (!meddles || !from_connected) return;
      if (kept.empty()) {
        kept = std::exchange(bytes, {});
      } else if (exchanges) {
        bytes += kept;
      }
    });
    Pair pair = shake_hands(relay);
    meddles = true;
    for (const char* word : {"first", "other"}) {
      write_all(pair.connected, word, soon());
      std::this_thread::sleep_for(50ms);  // the relay reads them one by one
    }
    EXPECT_THROW(read_exactly(pair.accepted, 1, soon()), RemoteError);
  }
}

TEST(Stream, RefusesARecordedConnection) {
  std::string recorded;
  {
    Relay relay([&](std::string& bytes, bool from_connected) {
      if (from_connected) recorded += bytes;
    });
    Pair pair = relay.shake_hands();
    write_all(pair.connected, "add a worker", soon());
    EXPECT_EQ(read_exactly(pair.accepted, 12, soon()), "add a worker");
  }
  Sockets sockets;
  ASSERT_GT(::send(sockets.connected.get(), recorded.data(), recorded.size(), 0), 0);
  Stream stream(std::move(sockets.accepted), Role::accepted, kKey);
  EXPECT_THROW(shake_hands(stream, soon()), RemoteError);
}

// Whether a peer that knows the secret, and would do without an ephemeral exchange, gets a connection.
bool accepts_groups(const char* groups) {
  Sockets sockets;
  const PreSharedKey psk = derive_key(kKey);
  const SslHandle ssl = make_ssl(Role::connected, psk);
  SSL_set1_groups_list(ssl.get(), groups);
  SSL_set_options(ssl.get(), SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_set_fd(ssl.get(), sockets.connected.get());
  auto accepted = std::async(std::launch::async, [&] {
    Stream stream(std::move(sockets.accepted), Role::accepted, kKey);
    try {
      shake_hands(stream, soon());
      return true;
    } catch (const RemoteError&) {
      return false;
    }
  });
  SSL_do_handshake(ssl.get());  // blocks
  return accepted.get();
}

// So a recording stays closed to those who learn the secret later.
TEST(Stream, IsNeverMadeWithoutAnEphemeralExchange) {
  EXPECT_TRUE(accepts_groups("X25519"));
  EXPECT_FALSE(accepts_groups("P-256"));
}

TEST(Stream, KnowsTheUserAtTheOtherEndOfAUnixSocket) {
  Sockets sockets;
  EXPECT_TRUE(is_same_user(sockets.accepted.get()));
}

}  // namespace
}  // namespace dtrain::net
