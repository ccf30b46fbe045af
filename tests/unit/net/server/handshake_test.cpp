#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/net/handshake.hpp>

#include "server/handshake_steps.hpp"

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;

struct Pair {
  FileDescriptor connected, accepted;
  explicit Pair(int flags = 0) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends), 0);
    connected = FileDescriptor(ends[0]);
    accepted = FileDescriptor(ends[1]);
  }
};

// What the accepted side learns while a thread plays the connected side; a failure there is rethrown here.
std::string accept_from(Pair& pair, std::string_view secret, std::string_view their_secret,
                        std::chrono::milliseconds deadline = 10s) {
  auto peer = std::async(std::launch::async, [&] {
    try {
      return prove_and_verify(pair.connected.get(), Role::connected, their_secret, "from connected", deadline);
    } catch (const RemoteError&) {
      pair.connected = FileDescriptor();
      throw;
    }
  });
  const std::string hello = prove_and_verify(pair.accepted.get(), Role::accepted, secret, "from accepted", deadline);
  EXPECT_EQ(peer.get(), "from accepted");
  return hello;
}

TEST(Handshake, TellsEachSideWhatTheOtherSaysOfItself) {
  Pair blocking, polled(SOCK_NONBLOCK);
  EXPECT_EQ(accept_from(blocking, "token", "token"), "from connected");
  EXPECT_EQ(accept_from(polled, "token", "token"), "from connected");
}

TEST(Handshake, RefusesAnotherSecret) {
  Pair pair;
  auto peer = std::async(std::launch::async, [&] {
    EXPECT_THROW(prove_and_verify(pair.connected.get(), Role::connected, "other", "", 10s), RemoteError);
  });
  EXPECT_THROW(prove_and_verify(pair.accepted.get(), Role::accepted, "token", "", 10s), RemoteError);
  pair.accepted = FileDescriptor();
  peer.get();
}

TEST(Handshake, EndsAtTheDeadlineWhenThePeerIsSilent) {
  Pair pair;
  EXPECT_THROW(prove_and_verify(pair.accepted.get(), Role::accepted, "token", "", 50ms), RemoteError);
  EXPECT_THROW(prove_and_verify(pair.connected.get(), Role::connected, "token", "", 50ms), RemoteError);
}

TEST(Handshake, EndsWhenThePeerIsGone) {
  Pair pair;
  pair.connected = FileDescriptor();
  EXPECT_THROW(prove_and_verify(pair.accepted.get(), Role::accepted, "token", "", 10s), RemoteError);
}

TEST(Handshake, GivesAStrangerNoByte) {
  Pair pair;
  const std::string request = "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: */*\r\n\r\n";
  ASSERT_EQ(::send(pair.connected.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  EXPECT_THROW(prove_and_verify(pair.accepted.get(), Role::accepted, "token", "", 10s), RemoteError);
  char byte;
  EXPECT_EQ(::recv(pair.connected.get(), &byte, 1, MSG_DONTWAIT), -1);
}

// Hands each side's output to the other until both are done or one throws.
void converse(Handshake& connected, Handshake& accepted) {
  std::string to_accepted, to_connected;
  while (connected.wanted() > 0 || accepted.wanted() > 0) {
    to_accepted += connected.take_output();
    to_connected += accepted.take_output();
    Handshake& next = accepted.wanted() > 0 && to_accepted.size() >= accepted.wanted() ? accepted : connected;
    std::string& from = &next == &accepted ? to_accepted : to_connected;
    const std::string part = from.substr(0, next.wanted());
    from.erase(0, part.size());
    next.receive(part);
  }
}

TEST(HandshakeSteps, ProveTheSecretToBothSides) {
  Handshake connected(Role::connected, "token", ""), accepted(Role::accepted, "token", "me");
  converse(connected, accepted);
  EXPECT_EQ(connected.peer_hello(), "me");
  EXPECT_EQ(accepted.peer_hello(), "");
}

// What `side` sends next, cut off from `wire` by what the peer wants.
void feed(Handshake& side, const std::string& wire) {
  std::size_t at = 0;
  while (at < wire.size()) {
    const std::size_t size = side.wanted();
    side.receive(wire.substr(at, size));
    at += size;
  }
}

TEST(HandshakeSteps, RefuseTheirOwnMessagesReflected) {
  Handshake connected(Role::connected, "token", "hello");
  feed(connected, connected.take_output());
  EXPECT_THROW(feed(connected, connected.take_output()), RemoteError);
}

TEST(HandshakeSteps, RefuseARecordedProof) {
  Handshake connected(Role::connected, "token", "hello"), first(Role::accepted, "token", "");
  const std::string opening = connected.take_output();
  feed(first, opening);
  feed(connected, first.take_output());
  const std::string proof = connected.take_output();
  feed(first, proof);
  EXPECT_EQ(first.wanted(), 0u);

  Handshake second(Role::accepted, "token", "");
  feed(second, opening);
  EXPECT_THROW(feed(second, proof), RemoteError);
}

TEST(HandshakeSteps, CoverWhatEachSideSaysOfItself) {
  Handshake connected(Role::connected, "token", "worker 1"), accepted(Role::accepted, "token", "");
  std::string opening = connected.take_output();
  opening.back() = '2';
  feed(accepted, opening);
  feed(connected, accepted.take_output());
  EXPECT_THROW(feed(accepted, connected.take_output()), RemoteError);
}

TEST(HandshakeSteps, GiveNoProofBeforeTheOtherSideIsProved) {
  Handshake stranger(Role::connected, "guess", ""), accepted(Role::accepted, "token", "");
  feed(accepted, stranger.take_output());
  feed(stranger, accepted.take_output());
  EXPECT_THROW(feed(accepted, stranger.take_output()), RemoteError);
  EXPECT_EQ(accepted.take_output(), "");
}

TEST(HandshakeSteps, RefuseAnEmptySecretAndALongHello) {
  EXPECT_THROW(Handshake(Role::accepted, "", ""), UsageError);
  EXPECT_THROW(Handshake(Role::accepted, "token", std::string(kMaxHello + 1, 'x')), UsageError);
}

}  // namespace
}  // namespace dtrain::net
