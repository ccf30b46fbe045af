#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include <dtrain/base/error.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/socket_address.hpp>
#include <dtrain/net/stream.hpp>

#include "net/running_port.hpp"
#include "server/frames.hpp"
#include "server/sockets.hpp"

namespace dtrain::net {
namespace {

TEST(Channel, CarriesFramesOfAnySizeBothWaysInOrder) {
  Port port;
  Ear near, far;
  const auto ours = port.connect();
  const auto theirs = port.accepted.take();
  ours->listen(near.events());
  theirs->listen(far.events());
  const std::string large(kMaxFrame, 'x');
  for (const std::string& frame : {std::string(), std::string("a\0b", 3), large, std::string("last")}) {
    ours->send(frame);
    theirs->send(frame);
  }
  for (Ear* ear : {&near, &far}) {
    EXPECT_EQ(ear->frames.take(), "");
    EXPECT_EQ(ear->frames.take(), std::string("a\0b", 3));
    EXPECT_EQ(ear->frames.take(), large);
    EXPECT_EQ(ear->frames.take(), "last");
  }
  EXPECT_EQ(ours->peer_address(), "127.0.0.1");
  EXPECT_EQ(theirs->local_address(), "127.0.0.1");
}

// "" where it does not fail.
template <typename Work>
std::string hint_without_files(const Work& work) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{1, before.rlim_max};  // 0 is in use
  ::setrlimit(RLIMIT_NOFILE, &none);
  std::string hint;
  try {
    work();
  } catch (const Error& error) {
    hint = error.hint();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  return hint;
}

TEST(Channel, NamesTheLimitOnFilesWhereNoSocketIsToBeHad) {
  Loop loop;
  for (const std::string& hint :
       {hint_without_files([] { connect_to("127.0.0.1", 1, 1s); }), hint_without_files([] { listen_on("127.0.0.1"); }),
        hint_without_files([&] { loop.when_readable(0, [] { return false; }); })}) {
    EXPECT_NE(hint.find("ulimit -n, currently 1"), std::string::npos) << hint;
  }
}

TEST(Channel, KeepsFramesUntilSomebodyListens) {
  Port port;
  Ear ear;
  auto ours = port.connect();
  const auto theirs = port.accepted.take();
  ours->send("early");
  ours->close_after_sending();
  ours = nullptr;
  std::this_thread::sleep_for(50ms);
  theirs->listen(ear.events());
  EXPECT_EQ(ear.frames.take(), "early");
  EXPECT_EQ(ear.ends.take(), "the peer closed the connection");
}

TEST(Channel, SendsEverythingBeforeItClosesAndTellsBothSidesOnce) {
  Port port;
  Ear near, far;
  const auto ours = port.connect();
  const auto theirs = port.accepted.take();
  ours->listen(near.events());
  theirs->listen(far.events());
  for (int i = 0; i < 1000; ++i) ours->send(std::to_string(i));
  ours->close_after_sending();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(far.frames.take(), std::to_string(i));
  EXPECT_EQ(far.ends.take(), "the peer closed the connection");
  EXPECT_EQ(near.ends.take(), "closed");
  ours->send("too late");
  EXPECT_TRUE(near.ends.stays_empty() && far.ends.stays_empty());
}

TEST(Channel, ClosesWithoutAWordWhenItsOwnerGoes) {
  Port port;
  Ear near, far;
  auto ours = port.connect();
  const auto theirs = port.accepted.take();
  ours->listen(near.events());
  theirs->listen(far.events());
  ours = nullptr;
  EXPECT_EQ(far.ends.take(), "the peer closed the connection");
  EXPECT_TRUE(near.ends.stays_empty());
}

TEST(Channel, MayBeDestroyedWithinItsOwnCallback) {
  Port port;
  Mailbox<int> calls;
  auto ours = port.connect();
  auto theirs = port.accepted.take();
  theirs->listen({[&](const std::string&) {
                    theirs = nullptr;
                    calls.put(1);
                  },
                  [&](const std::string&) { calls.put(2); }});
  for (int i = 0; i < 10; ++i) ours->send("x");
  EXPECT_EQ(calls.take(), 1);
  EXPECT_TRUE(calls.stays_empty());
}

TEST(Channel, EndsInsteadOfQueueingForAPeerThatDoesNotRead) {
  Port port;
  Ear ear;
  const auto ours = port.connect();
  const auto theirs = port.accepted.take();
  theirs->listen(ear.events());
  for (std::size_t sent = 0; sent <= kMaxUnsent + (8 << 20); sent += 1 << 20) theirs->send(std::string(1 << 20, 'x'));
  EXPECT_EQ(ear.ends.take(), "the peer does not read what it is sent");
}

TEST(Channel, RefusesToSendAFrameThatIsTooLarge) {
  Port port;
  Ear ear;
  const auto ours = port.connect();
  ours->listen(ear.events());
  ours->send(std::string(kMaxFrame + 1, 'x'));
  EXPECT_NE(ear.ends.take().find("too large"), std::string::npos);
}

TEST(Channel, OutlivesItsLoopHarmlessly) {
  ChannelPtr channel, listening;
  Ear ear;
  {
    Port port;
    channel = port.connect();
    listening = port.accepted.take();
    listening->listen(ear.events());
    port.settle();
  }
  channel->send("x");
  channel->listen({});
  listening->close_after_sending();
  EXPECT_EQ(channel->unsent(), 0u);
}

TEST(AdoptedChannel, NeedsNoProof) {
  RunningLoop running;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const auto one = adopt_channel(running.loop, FileDescriptor(ends[0]));
  const auto other = adopt_channel(running.loop, FileDescriptor(ends[1]));
  Ear ear;
  other->listen(ear.events());
  one->send("hello");
  EXPECT_EQ(ear.frames.take(), "hello");
  EXPECT_EQ(one->local_address(), "");
}

TEST(Connect, SaysAtItsDeadlineThatTheOtherSideDoesNotAnswer) {
  RunningLoop running;
  const FileDescriptor silent = listen_on("127.0.0.1");
  try {
    const auto channel =
        connect_channel(running.loop, "127.0.0.1", SocketAddress::own_of(silent.get()).port(), "token", 100ms);
    FAIL() << "connected";
  } catch (const RemoteError& error) {
    EXPECT_STREQ(error.what(), "the peer does not answer");
  }
}

// A peer that knows the secret and then breaks the rules.
struct Proven : Port {
  Ear ear;
  Stream stream{connect_as_stranger(), Role::connected, {"token", "control"}};
  ChannelPtr theirs;
  Proven() {
    shake_hands(stream, soon());
    theirs = accepted.take();
    theirs->listen(ear.events());
  }
  ~Proven() { stop(); }
  static StreamClock::time_point soon() { return StreamClock::now() + 60s; }
  void write(std::string_view bytes) {
    try {
      write_all(stream, bytes, soon());
    } catch (const RemoteError&) {  // the other side has had enough
    }
  }
};

TEST(Channel, PutsTornFramesTogether) {
  Proven peer;
  const std::string frame = frame_header(5) + "hello";
  for (int round = 0; round < 3; ++round) {
    for (char byte : frame) {
      peer.write({&byte, 1});
      if (round == 0) std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(peer.ear.frames.take(), "hello");
  }
}

TEST(Channel, ClosesWhenAFrameIsTooLargeAndKeepsWhatCameBefore) {
  Proven peer;
  peer.write(frame_header(2) + "ok" + frame_header(kMaxFrame + 1) + "xxxx");
  EXPECT_EQ(peer.ear.frames.take(), "ok");
  EXPECT_NE(peer.ear.ends.take().find("announces a frame"), std::string::npos);
  EXPECT_THROW(read_exactly(peer.stream, 1, peer.soon()), RemoteError);
}

TEST(Channel, GivesNoHalfFrame) {
  Proven peer;
  peer.write(frame_header(10) + "half");
  peer.stream = Stream();
  EXPECT_EQ(peer.ear.ends.take(), "the peer closed the connection");
  EXPECT_TRUE(peer.ear.frames.stays_empty());
}

TEST(Channel, SurvivesAnyBytesAfterTheProof) {
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    Proven peer;
    peer.write(random_bytes(random));
    peer.stream = Stream();
    peer.ear.ends.take();
  }
}

TEST(Channel, LeaksNoDescriptorOverManyConnections) {
  Port port;
  port.connect();
  port.accepted.take();
  port.settle();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 300; ++i) {
    const auto ours = port.connect();
    port.accepted.take();
    const FileDescriptor stranger = port.connect_as_stranger();
  }
  // The last stranger's connection may be accepted after a look that saw none.
  constexpr int kCalmLooks = 20;
  int calm = 0;
  for (int i = 0; i < 1000 && calm < kCalmLooks; ++i) {
    calm = open_descriptors() <= before ? calm + 1 : 0;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(calm, kCalmLooks) << open_descriptors() << " descriptors are open, " << before << " were";
}

TEST(Loop, WatchesDescriptorsUntilToldToStop) {
  RunningLoop running;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor read_end(ends[0]), write_end(ends[1]);
  Mailbox<char> bytes;
  running.loop.when_readable(read_end.get(), [&] {
    char byte = 0;
    [[maybe_unused]] const ssize_t got = ::read(read_end.get(), &byte, 1);
    bytes.put(byte);
    return byte != '!';
  });
  for (char byte : std::string("ab!c")) ASSERT_EQ(::write(write_end.get(), &byte, 1), 1);
  EXPECT_EQ(bytes.take(), 'a');
  EXPECT_EQ(bytes.take(), 'b');
  EXPECT_EQ(bytes.take(), '!');
  EXPECT_TRUE(bytes.stays_empty());
}

TEST(Loop, StopsAlsoWhenToldBeforeItRuns) {
  Loop loop;
  loop.stop();
  loop.run();
}

TEST(Channel, IsOfOnePurposeAndShowsThePortOfThePeer) {
  RunningLoop running;
  Mailbox<ChannelPtr> accepted;
  const Listener listener(running.loop, "127.0.0.1", "token",
                          [&](ChannelPtr channel) { accepted.put(std::move(channel)); }, {.purpose = "other"});
  const bool privileged = ::geteuid() == 0;
  EXPECT_THROW(connect_channel(running.loop, "127.0.0.1", listener.port(), "token", 10s), RemoteError);
  const auto ours = connect_channel(running.loop, "127.0.0.1", listener.port(), "token", 60s,
                                    {.purpose = "other", .from_privileged_port = privileged});
  EXPECT_EQ(accepted.take()->peer_port() < 1024, privileged);
}

TEST(AskChannel, BringsTheFirstAnswerOrSaysThatNoneCame) {
  RunningLoop running;
  Mailbox<ChannelPtr> accepted;
  const Listener listener(running.loop, "127.0.0.1", "token", [&](const ChannelPtr& channel) {
    channel->listen({.on_frame = [channel = channel.get()](const std::string& frame) { channel->send(frame + "!"); },
                     .on_close = [](const std::string&) {}});
    accepted.put(channel);
  });
  EXPECT_EQ(ask_channel("127.0.0.1", listener.port(), "token", "question", 60s), "question!");
  const Port silent;
  EXPECT_THROW(ask_channel("127.0.0.1", silent.listener.port(), "token", "question", 100ms), RemoteError);
}

}  // namespace
}  // namespace dtrain::net
