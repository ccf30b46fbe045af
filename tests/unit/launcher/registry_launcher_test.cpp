#include <dtrain/launcher/registry_launcher.hpp>

#include <gtest/gtest.h>

#include <future>

#include <dtrain/base/json.hpp>
#include <dtrain/net/loop_thread.hpp>
#include <dtrain/net/socket_address.hpp>

#include "net/server/sockets.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;

AgentRegistry head_at(std::uint16_t port) {
  return {.cluster = "demo", .address = "127.0.0.1", .port = port, .token = "secret"};
}

// One start by the launcher. It must outlive the launcher.
struct AskedStart {
  void ask(RegistryLauncher& launcher, const std::string& host) {
    launcher.start({.name = host, .host = host}, {.address = "127.0.0.1", .port = 7, .token = "t", .host = host},
                   [this](const elastic::StartFailure& failure) { why.set_value(failure.reason); });
  }
  std::string reason() {
    auto future = why.get_future();
    return future.wait_for(60s) == std::future_status::ready ? future.get() : "nothing was reported";
  }
  std::promise<std::string> why;
};

TEST(RegistryLauncher, AHeadThatIsSilentDoesNotBlockTheCaller) {
  FileDescriptor silent = net::listen_on("127.0.0.1", 0);  // the kernel connects, and nothing answers the handshake
  AskedStart first, second;
  RegistryLauncher launcher(head_at(net::SocketAddress::own_of(silent.get()).port()), "");
  const auto begun = std::chrono::steady_clock::now();
  first.ask(launcher, "h1");
  second.ask(launcher, "h2");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
  silent = FileDescriptor();  // resets the connection that waits
  EXPECT_NE(first.reason().find("the head of cluster demo"), std::string::npos);
  EXPECT_NE(second.reason().find("the head of cluster demo"), std::string::npos);
}

// Refuses h1, and ends the connection at h2.
TEST(RegistryLauncher, AHeadThatRefusesOrIsLostFailsTheStart) {
  AskedStart refused, lost;
  std::shared_ptr<net::Channel> node;
  net::LoopThread loop;
  const net::Listener head(loop.loop(), "127.0.0.1", "secret", [&](std::shared_ptr<net::Channel> channel) {
    node = std::move(channel);
    node->listen({.on_frame =
                      [&](const std::string& frame) {
                        const Json question = Json::parse(frame, "a start");
                        if (question.at("host").as_string() == "h2") return node.reset();
                        node->send(Json::object({{"id", question.at("id")}, {"error", "no such node"}}).dump());
                      },
                  .on_close = [](const std::string&) {}});
  });
  RegistryLauncher launcher(head_at(head.port()), "");
  refused.ask(launcher, "h1");
  EXPECT_EQ(refused.reason(), "no such node");
  lost.ask(launcher, "h2");
  EXPECT_NE(lost.reason().find("the cluster's head was lost"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::launcher
