#include <dtrain/net/channel.hpp>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/net/handshake.hpp>

#include "frames.hpp"
#include "handshake_steps.hpp"
#include "sockets.hpp"

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;
using ChannelPtr = std::shared_ptr<Channel>;

// What callbacks hand to the test's thread.
template <typename T>
class Mailbox {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    wake_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, 20s, [&] { return next_ < values_.size(); })) throw std::runtime_error("nothing came");
    return std::move(values_[next_++]);
  }
  bool stays_empty() {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, 100ms, [&] { return next_ < values_.size(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<T> values_;
  std::size_t next_ = 0;
};

struct Ear {
  Mailbox<std::string> frames, ends;
  Channel::Events events() {
    return {[this](std::string frame) { frames.put(std::move(frame)); },
            [this](std::string reason) { ends.put(std::move(reason)); }};
  }
};

struct RunningLoop {
  Loop loop;
  std::thread thread{[this] { loop.run(); }};
  ~RunningLoop() {
    loop.stop();
    thread.join();
  }
  // Everything that was posted before has been done.
  void settle() {
    std::promise<void> done;
    loop.post([&] { done.set_value(); });
    done.get_future().wait();
  }
};

struct Port : RunningLoop {
  Mailbox<ChannelPtr> accepted;
  Listener listener{loop, "127.0.0.1", "token", [this](ChannelPtr channel) { accepted.put(std::move(channel)); }};

  ChannelPtr connect(const std::string& secret = "token", std::chrono::milliseconds deadline = 10s) {
    return connect_channel(loop, "127.0.0.1", listener.port(), secret, deadline);
  }
  FileDescriptor connect_as_stranger() { return connect_to("127.0.0.1", listener.port(), 10s); }
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

void write_raw(const FileDescriptor& socket, std::string_view bytes) {
  pollfd entry{socket.get(), POLLOUT, 0};
  while (!bytes.empty() && ::poll(&entry, 1, 10'000) > 0) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// What comes until the other side closes.
std::string read_raw(const FileDescriptor& socket) {
  std::string all;
  pollfd entry{socket.get(), POLLIN, 0};
  while (::poll(&entry, 1, 10'000) > 0) {
    char chunk[4096];
    const ssize_t got = ::recv(socket.get(), chunk, sizeof chunk, 0);
    if (got <= 0) return all;
    all.append(chunk, static_cast<std::size_t>(got));
  }
  throw std::runtime_error("the connection stays open");
}

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

TEST(Listener, HandsOverNobodyWithAnotherSecret) {
  Port port;
  EXPECT_THROW(port.connect("other"), RemoteError);
  EXPECT_TRUE(port.accepted.stays_empty());
  port.connect();
  port.accepted.take();
}

TEST(Listener, GivesStrangersNothingAndServesOthersMeanwhile) {
  Port port;
  const FileDescriptor silent = port.connect_as_stranger();
  const FileDescriptor web = port.connect_as_stranger();
  write_raw(web, "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: */*\r\nUser-Agent: a stranger\r\n\r\n");
  const FileDescriptor garbage = port.connect_as_stranger();
  write_raw(garbage, std::string(1 << 20, '\xff'));
  EXPECT_EQ(read_raw(web), "");
  EXPECT_EQ(read_raw(garbage), "");
  port.connect();
  port.accepted.take();
}

std::string random_bytes(std::mt19937& random) {
  std::string bytes(random() % 200, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(Listener, SurvivesAnyBytesBeforeTheProof) {
  Port port;
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const FileDescriptor stranger = port.connect_as_stranger();
    std::string opening = Handshake(Role::connected, "guess", "dtrain control 1").take_output();
    opening.resize(random() % opening.size());
    write_raw(stranger, i % 2 == 0 ? random_bytes(random) : opening + random_bytes(random));
  }
  EXPECT_TRUE(port.accepted.stays_empty());
  port.connect();
  port.accepted.take();
}

TEST(Listener, IsNotFilledUpByStrangersThatSayNothing) {
  Port port;
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 150; ++i) strangers.push_back(port.connect_as_stranger());
  port.connect();
  port.accepted.take();
}

TEST(Listener, ServesACrowdThatComesAtOnce) {
  Port port;
  std::vector<std::future<ChannelPtr>> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(std::async(std::launch::async, [&] { return port.connect(); }));
  for (auto& member : crowd) EXPECT_NE(member.get(), nullptr);
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
  const auto ours = connect_channel(running.loop, "::1", listener->port(), "token", 10s);
  EXPECT_EQ(ours->local_address(), "::1");
  EXPECT_EQ(accepted.take()->peer_address(), "::1");
}

TEST(Listener, TellsAnAddressThatIsNotOfThisMachine) {
  RunningLoop running;
  EXPECT_THROW(Listener(running.loop, "192.0.2.1", "token", [](ChannelPtr) {}), Error);
  EXPECT_THROW(Listener(running.loop, "localhost", "token", [](ChannelPtr) {}), UsageError);
}

TEST(Connect, GivesUpAtItsDeadlineWhenTheOtherSideSaysNothing) {
  RunningLoop running;
  const FileDescriptor silent = listen_on("127.0.0.1");
  EXPECT_THROW(connect_channel(running.loop, "127.0.0.1", local_name(silent.get()).port, "token", 100ms), RemoteError);
}

// A peer that knows the secret and then breaks the rules.
struct Proven : Port {
  Ear ear;
  FileDescriptor socket = connect_as_stranger();
  ChannelPtr theirs;
  Proven() {
    prove_and_verify(socket.get(), Role::connected, "token", "dtrain control 1", 10s);
    theirs = accepted.take();
    theirs->listen(ear.events());
  }
};

TEST(Channel, PutsTornFramesTogether) {
  Proven peer;
  const std::string frame = frame_header(5) + "hello";
  for (int round = 0; round < 3; ++round) {
    for (char byte : frame) {
      write_raw(peer.socket, {&byte, 1});
      if (round == 0) std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(peer.ear.frames.take(), "hello");
  }
}

TEST(Channel, ClosesWhenAFrameIsTooLargeAndKeepsWhatCameBefore) {
  Proven peer;
  write_raw(peer.socket, frame_header(2) + "ok" + frame_header(kMaxFrame + 1) + "xxxx");
  EXPECT_EQ(peer.ear.frames.take(), "ok");
  EXPECT_NE(peer.ear.ends.take().find("announces a frame"), std::string::npos);
  EXPECT_EQ(read_raw(peer.socket), "");
}

TEST(Channel, GivesNoHalfFrame) {
  Proven peer;
  write_raw(peer.socket, frame_header(10) + "half");
  peer.socket = FileDescriptor();
  EXPECT_EQ(peer.ear.ends.take(), "the peer closed the connection");
  EXPECT_TRUE(peer.ear.frames.stays_empty());
}

TEST(Channel, SurvivesAnyBytesAfterTheProof) {
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    Proven peer;
    write_raw(peer.socket, random_bytes(random));
    peer.socket = FileDescriptor();
    peer.ear.ends.take();
  }
}

TEST(Listener, RefusesAPeerThatProvesItselfForAnotherKindOfPort) {
  Port port;
  const FileDescriptor socket = port.connect_as_stranger();
  try {
    prove_and_verify(socket.get(), Role::connected, "token", "some other port", 10s);
  } catch (const RemoteError&) {
  }
  EXPECT_TRUE(port.accepted.stays_empty());
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
  for (int i = 0; i < 500 && open_descriptors() > before; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_LE(open_descriptors(), before);
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

}  // namespace
}  // namespace dtrain::net
