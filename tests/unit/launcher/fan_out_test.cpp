#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <tuple>

#include <dtrain/launcher/fan_out.hpp>

#include "net/ssh/ssh_server.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;

std::vector<net::SshTarget> many(const net::SshServer& server, int count) {
  std::vector<net::SshTarget> hosts;
  for (int i = 1; i <= count; ++i) hosts.push_back({fmt::format("127.0.1.{}", i), "", server.target().port});
  return hosts;
}

// Runs `exit 0` on all; the failures by host.
std::map<std::size_t, HostFailure> failures_of(const std::vector<net::SshTarget>& hosts, const FanOutOptions& options) {
  std::map<std::size_t, HostFailure> failures;
  std::set<std::size_t> told;
  fan_out(
      hosts, options, [](std::size_t, net::SshSession& session) { std::ignore = session.run({.shell = "exit 0"}); },
      [&](std::size_t host, const std::optional<HostFailure>& failure, auto) {
        EXPECT_TRUE(told.insert(host).second);
        if (failure) failures[host] = *failure;
      });
  EXPECT_EQ(told.size(), hosts.size());
  return failures;
}

class FanOut : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SSHD(); }
};

TEST_F(FanOut, ReachesAHundredAndTwentyEightHostsWhoseSshdTurnsMostAway) {
  const net::SshServer server("MaxStartups 3:50:5\nLogLevel VERBOSE\n");
  std::vector<net::SshTarget> hosts = many(server, 128);
  hosts[40].port = net::free_port();  // nobody listens there
  FanOutOptions options{.ssh = server.options()};
  options.ssh.connect_deadline = 500s;
  const auto failures = failures_of(hosts, options);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures.begin()->first, 40u);
  EXPECT_EQ(failures.begin()->second.kind, HostFailure::Kind::unreachable);
  EXPECT_NE(failures.begin()->second.what.find("Connection refused"), std::string::npos);
  EXPECT_NE(server.log().find("drop connection"), std::string::npos) << "nobody was turned away";
}

TEST_F(FanOut, WorksOnNoMoreHostsAtOnceThanItMay) {
  const net::SshServer server;
  std::atomic<int> now = 0, most = 0;
  const auto late = std::chrono::steady_clock::now() + 60s;
  fan_out(
      many(server, 12), {.ssh = server.options(), .parallel = 3},
      [&](std::size_t, net::SshSession&) {
        const int count = ++now;
        for (int seen = most; seen < count && !most.compare_exchange_weak(seen, count);) {
        }
        do {  // the first one waits for another, whose login may take long
          std::this_thread::sleep_for(30ms);
        } while (most < 2 && std::chrono::steady_clock::now() < late);
        --now;
      },
      [](std::size_t, const auto&, auto) {});
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 2);
}

TEST_F(FanOut, TellsWhatTheWorkThrewApartFromAHostThatIsNotReached) {
  const net::SshServer server;
  std::map<std::size_t, HostFailure::Kind> kinds;
  fan_out(
      {server.target(), {"127.0.0.1", "", net::free_port()}}, {.ssh = server.options()},
      [](std::size_t, net::SshSession&) { throw Error("no luck", "try again"); },
      [&](std::size_t host, const std::optional<HostFailure>& failure, auto) { kinds[host] = failure->kind; });
  EXPECT_EQ(kinds[0], HostFailure::Kind::failed);
  EXPECT_EQ(kinds[1], HostFailure::Kind::unreachable);
}

TEST_F(FanOut, BeginsNoHostAfterAStop) {
  const net::SshServer server;
  std::stop_source stop;
  FanOutOptions options{.ssh = server.options(), .parallel = 2};
  options.ssh.stop = stop.get_token();
  std::atomic<int> begun = 0, stopped = 0;
  fan_out(
      many(server, 8), options,
      [&](std::size_t, net::SshSession& session) {
        ++begun;
        stop.request_stop();
        std::ignore = session.run({.argv = {"sleep", "98763"}});
      },
      [&](std::size_t, const std::optional<HostFailure>& failure, auto) {
        stopped += failure && failure->kind == HostFailure::Kind::stopped;
      });
  EXPECT_LE(begun, 2);
  EXPECT_EQ(stopped, 8);
}

TEST_F(FanOut, HandsOnWhatTheListenerThrows) {
  const net::SshServer server;
  const auto end = [](std::size_t, const auto&, auto) { throw Error("stdout is full"); };
  EXPECT_THROW(fan_out(
                   many(server, 4), {.ssh = server.options()}, [](std::size_t, net::SshSession&) {}, end),
               Error);
}

}  // namespace
}  // namespace dtrain::launcher
