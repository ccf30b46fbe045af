#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <list>
#include <mutex>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/net/stream.hpp>

#include "comm/tcp_world.hpp"
#include "comm/world.hpp"
#include "tcp/reception.hpp"

namespace dtrain::comm {
namespace {

using namespace std::chrono_literals;
using tcp::Clock;

const ReductionShape kShape{.shards = 8, .size = 3000};

FileDescriptor call(const PeerAddress& address) {
  return tcp::connect_to(address, Clock::now() + 5s, [] { return false; });
}

// What connect() threw, in a thread of its own for each rank that is not in `absent`.
std::vector<std::string> try_to_connect(TcpWorld& world, std::uint64_t generation, std::chrono::milliseconds deadline,
                                        std::stop_token cancel = {}, int absent = -1) {
  std::vector<std::string> thrown(world.endpoints.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < world.endpoints.size(); ++rank) {
    if (static_cast<int>(rank) == absent) continue;
    threads.emplace_back([&, rank] {
      try {
        world.endpoints[rank]->connect({generation, static_cast<int>(rank), world.plan.ranks}, deadline, cancel);
      } catch (const PeerLost& error) {
        thrown[rank] = error.what();
      }
    });
  }
  threads.clear();
  return thrown;
}

void expect_to_work(const std::vector<std::unique_ptr<Communicator>>& communicators) {
  const auto thrown = run_ranks(communicators, [&](Communicator& comm) {
    EXPECT_TRUE(same_bits(reduce(comm, kShape).sum, direct_tree(kShape)));
  });
  for (const std::string& reason : thrown) EXPECT_EQ(reason, "");
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

std::size_t living_threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

TEST(Mesh, IsMadeForSeveralGenerationsAtOnceOverTheSameEndpoints) {
  TcpWorld world(3, {}, 1);
  std::vector<std::vector<std::unique_ptr<Communicator>>> later(4);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < later.size(); ++i) {
    threads.emplace_back([&, i] { later[i] = world.connect(i + 2); });
  }
  threads.clear();
  for (const auto& communicators : later) expect_to_work(communicators);
  expect_to_work(world.communicators);
}

// How many connections of this process go by the Unix socket of an endpoint.
std::size_t near_connections(const PeerAddress& address) {
  const std::string name = fmt::format("@dtrain-data {} {}", address.address, address.port);
  std::ifstream table("/proc/net/unix");
  std::size_t count = 0;
  for (std::string line; std::getline(table, line);) {
    const bool is_connected = line.find(" 03 ") != std::string::npos;
    count += is_connected && line.ends_with(name);
  }
  return count;
}

// Threads with stacks larger than the address space cannot be made.
TEST(Mesh, SaysThatNoThreadIsToBeHad) {
  Endpoint endpoint({.secret = "s"});
  pthread_attr_t before, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  std::string why;
  try {
    endpoint.connect({1, 0, {endpoint.address(), {"127.0.0.1", 1}}}, 5s);
  } catch (const PeerLost& error) {
    why = std::string("a peer is blamed: ") + error.what();
  } catch (const std::exception& error) {
    why = error.what();
  }
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  EXPECT_NE(why.find("no thread is to be had for the call to rank 1"), std::string::npos) << why;
  EXPECT_EQ(why.find("a peer is blamed"), std::string::npos) << why;
}

TEST(Mesh, OfOneMachineGoesByUnixSockets) {
  TcpWorld world(3);
  EXPECT_EQ(near_connections(world.plan.ranks[0]), 0u);  // the lower rank calls
  EXPECT_EQ(near_connections(world.plan.ranks[1]), 1u);
  EXPECT_EQ(near_connections(world.plan.ranks[2]), 2u);
}

TEST(Mesh, GoesByTcpWhereUnixSocketsAreNotWanted) {
  TcpWorld world(3, {.by_unix_sockets = false});
  EXPECT_EQ(near_connections(world.plan.ranks[2]), 0u);
  expect_to_work(world.communicators);
}

TEST(Mesh, GoesByTcpWhereAStrangerSitsAtTheNameOfTheUnixSocket) {
  TcpWorld world(2, {.by_unix_sockets = false});
  const FileDescriptor stranger = tcp::listen_near(world.plan.ranks[1]);
  std::jthread turning_away([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) tcp::accept_from(std::array{stranger.get()}, 10ms);
  });
  expect_to_work(world.connect(2));
}

// A process of another user that took the name of a Unix socket; it ends with this object.
class Squatter {
 public:
  explicit Squatter(const PeerAddress& address) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const FileDescriptor ready(ends[0]);
    child_ = ::fork();
    if (child_ == 0) {
      const FileDescriptor held = ::setuid(65534) == 0 ? tcp::listen_near(address) : FileDescriptor();
      const char word = held ? 'y' : 'n';
      [[maybe_unused]] const ssize_t written = ::write(ends[1], &word, 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char word = 0;
    EXPECT_EQ(::read(ready.get(), &word, 1), 1);
    EXPECT_EQ(word, 'y');
  }
  ~Squatter() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_ = -1;
};

TEST(Mesh, SharesNoUnixSocketWithAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  TcpWorld world(2, {.by_unix_sockets = false});
  const Squatter squatter(world.plan.ranks[1]);
  EXPECT_FALSE(tcp::connect_near(world.plan.ranks[1]));
  expect_to_work(world.connect(2));
}

TEST(Mesh, NamesTheRankThatDoesNotCome) {
  TcpWorld world(3);
  const auto thrown = try_to_connect(world, 2, 1s, {}, 1);
  const std::string name = "rank 1 at 127.0.0.1 port " + std::to_string(world.plan.ranks[1].port);
  EXPECT_NE(thrown[0].find(name + " (has not come to this generation)"), std::string::npos) << thrown[0];
  EXPECT_NE(thrown[2].find(name + " (has not called)"), std::string::npos) << thrown[2];
}

TEST(Mesh, NamesTheRankThatIsNoMore) {
  TcpWorld world(2);
  world.communicators.clear();
  world.endpoints[1].reset();
  const MeshPlan plan{2, 0, world.plan.ranks};
  try {
    world.endpoints[0]->connect(plan, 100ms);
    FAIL() << "connected to nobody";
  } catch (const PeerLost& error) {
    EXPECT_NE(std::string(error.what()).find("does not accept connections"), std::string::npos) << error.what();
  }
}

TEST(Mesh, GivesUpAtOnceWhenCancelled) {
  TcpWorld world(3);
  std::stop_source stop;
  std::jthread canceller([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const auto begin = Clock::now();
  const auto thrown = try_to_connect(world, 2, 60s, stop.get_token(), 1);
  EXPECT_LT(Clock::now() - begin, 40s);
  EXPECT_NE(thrown[0].find("gave up"), std::string::npos) << thrown[0];
  EXPECT_NE(thrown[2].find("gave up"), std::string::npos) << thrown[2];
}

TEST(Mesh, IsMadeOfTheSameGenerationAgainAfterItWasGivenUp) {
  TcpWorld world(3);
  try_to_connect(world, 2, 50ms, {}, 1);
  expect_to_work(world.connect(2));
}

TEST(Mesh, SendsAnOlderGenerationAwaySoon) {
  TcpWorld world(2, {}, 7);
  const auto begin = Clock::now();
  try {
    world.endpoints[0]->connect({5, 0, world.plan.ranks}, 60s);
    FAIL() << "connected to an older generation";
  } catch (const PeerLost& error) {
    EXPECT_NE(std::string(error.what()).find("is in a newer generation"), std::string::npos) << error.what();
  }
  EXPECT_LT(Clock::now() - begin, 40s);
  expect_to_work(world.communicators);
}

TEST(Mesh, IsNotMadeWithAnotherSecret) {
  TcpWorld world(2);
  EndpointOptions other{.secret = "of another job"};
  Endpoint stranger(other);
  const std::vector<PeerAddress> ranks{stranger.address(), world.plan.ranks[1]};
  EXPECT_THROW(stranger.connect({2, 0, ranks}, 200ms), PeerLost);
  expect_to_work(world.communicators);
}

// Garbage, silence, half a handshake and a wrong proof at every port, without end while meshes form.
TEST(Mesh, FormsWhileStrangersKnock) {
  TcpWorld world(3);
  std::vector<std::jthread> strangers;
  for (int kind = 0; kind < 4; ++kind) {
    strangers.emplace_back([&world, kind](const std::stop_token& stop) {
      std::vector<FileDescriptor> open;
      for (std::size_t i = 0; !stop.stop_requested(); ++i) {
        FileDescriptor socket = call(world.plan.ranks[i % 3]);
        const std::string words = kind == 0 ? std::string(5000, '\xff') : std::string("dtrain\0\1", 8) + "half";
        if (kind <= 1) ::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
        if (kind == 3) {
          net::Stream guess(std::move(socket), net::Role::connected, {"guess", tcp::kDataPurpose});
          EXPECT_THROW(net::shake_hands(guess, Clock::now() + 1s), RemoteError);
        } else {
          open.push_back(std::move(socket));
        }
        if (open.size() > 40) open.clear();
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  for (std::uint64_t generation = 2; generation < 8; ++generation) expect_to_work(world.connect(generation));
  expect_to_work(world.communicators);
}

TEST(Mesh, CarriesPlainDataWhereAllRanksSaySo) {
  TcpWorld world(3, {.plain_data = true, .by_unix_sockets = false});
  expect_to_work(world.communicators);
}

TEST(Mesh, IsNotMadeBetweenPlainAndEncryptedRanks) {
  TcpWorld world(2, {.by_unix_sockets = false});
  Endpoint plain({.secret = "the token of this job", .plain_data = true, .by_unix_sockets = false});
  const std::vector<PeerAddress> ranks{plain.address(), world.plan.ranks[1]};
  std::jthread other([&] { EXPECT_THROW(world.endpoints[1]->connect({2, 1, ranks}, 300ms), PeerLost); });
  EXPECT_THROW(plain.connect({2, 0, ranks}, 300ms), PeerLost);
}

TEST(Mesh, HasAsManyConnectionsAsTheCallersSay) {
  const auto descriptors_of = [](EndpointOptions options) {
    TcpWorld world(3, std::move(options));
    expect_to_work(world.communicators);
    return open_descriptors();
  };
  const std::size_t one = descriptors_of({.by_unix_sockets = false, .connections = 1});
  EXPECT_EQ(descriptors_of({.by_unix_sockets = false, .connections = 4}), one + std::size_t{3 * 3 * 2});
  EXPECT_EQ(descriptors_of({.connections = 4}), descriptors_of({.connections = 1})) << "one on a machine";
}

// Passes bytes on between a port of its own and another one, both ways, and keeps what it saw.
class Detour {
 public:
  explicit Detour(const PeerAddress& to) : listening_(tcp::listen_on("127.0.0.1")) {
    thread_ = std::jthread([this, to](const std::stop_token& stop) { carry(stop, to); });
  }
  PeerAddress address() const { return tcp::address_of(listening_.get()); }
  std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void carry(const std::stop_token& stop, const PeerAddress& to) {
    std::list<std::array<FileDescriptor, 2>> ways;
    while (!stop.stop_requested()) {
      if (FileDescriptor caller = tcp::accept_from(std::array{listening_.get()}, 1ms)) {
        ways.push_back({std::move(caller), call(to)});
      }
      for (auto& way : ways) {
        for (const int side : {0, 1})
          pass(way[static_cast<std::size_t>(side)].get(), way[static_cast<std::size_t>(1 - side)].get());
      }
    }
  }

  void pass(int from, int to) {
    std::string bytes(1 << 20, '\0');
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) ::shutdown(to, SHUT_WR);
    if (got <= 0) return;
    bytes.resize(static_cast<std::size_t>(got));
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t sent = ::send(to, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;
      if (sent > 0) done += static_cast<std::size_t>(sent);
    }
    const std::lock_guard lock(mutex_);
    seen_ += bytes;
  }

  FileDescriptor listening_;
  std::mutex mutex_;
  std::string seen_;
  std::jthread thread_;
};

// Two ranks of which the lower one reaches the other by a detour. What the detour saw.
std::string reduce_by_detour(bool plain_data, std::string_view message) {
  TcpWorld world(2, {.plain_data = plain_data, .by_unix_sockets = false});
  Detour detour(world.plan.ranks[1]);
  const std::vector<PeerAddress> ranks{world.plan.ranks[0], detour.address()};
  std::unique_ptr<Communicator> first, second;
  {
    std::jthread other([&] { second = world.endpoints[1]->connect({2, 1, ranks}, 60s); });
    first = world.endpoints[0]->connect({2, 0, ranks}, 60s);
  }
  std::jthread other([&] { second->all_gather(std::as_bytes(std::span(message))); });
  first->all_gather(std::as_bytes(std::span(message)));
  other.join();
  return detour.seen();
}

TEST(Mesh, HidesWhatRanksSendFromAListener) {
  const std::string_view message = "the weights of a model that is worth something";
  EXPECT_NE(reduce_by_detour(true, message).find(message), std::string::npos);
  EXPECT_EQ(reduce_by_detour(false, message).find(message), std::string::npos);
}

TEST(Mesh, TakesNoCallThatWasLedToAnotherRank) {
  TcpWorld world(3, {.by_unix_sockets = false});
  Detour detour(world.plan.ranks[2]);
  const std::vector<PeerAddress> led{world.plan.ranks[0], detour.address(), world.plan.ranks[2]};
  std::vector<std::jthread> others;
  others.emplace_back([&] { EXPECT_THROW(world.endpoints[1]->connect({2, 1, world.plan.ranks}, 300ms), PeerLost); });
  others.emplace_back([&] {  // which both reach
    try {
      world.endpoints[2]->connect({2, 2, world.plan.ranks}, 300ms);
    } catch (const PeerLost&) {
    }
  });
  EXPECT_THROW(world.endpoints[0]->connect({2, 0, led}, 300ms), PeerLost);
}

TEST(Mesh, LeaksNoDescriptorAndNoThread) {
  TcpWorld world(3);
  world.communicators.clear();
  const std::size_t descriptors = open_descriptors(), threads = living_threads();
  for (std::uint64_t generation = 2; generation < 202; ++generation) {
    const auto communicators = world.connect(generation);
    if (generation % 3 == 0) communicators[0]->abort();
    if (generation % 30 == 1) expect_to_work(communicators);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(living_threads(), threads);
}

TEST(Mesh, IsMadeByFiftyJobsAtOnce) {
  std::vector<std::jthread> jobs;
  for (int job = 0; job < 50; ++job) {
    jobs.emplace_back([job] {
      const TcpWorld world(2, {.secret = "job " + std::to_string(job)});
      expect_to_work(world.communicators);
    });
  }
}

}  // namespace
}  // namespace dtrain::comm
