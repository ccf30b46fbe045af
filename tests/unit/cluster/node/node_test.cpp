#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/cluster/node.hpp>
#include <dtrain/net/http_server.hpp>

#include "cluster/node/one_machine.hpp"
#include "common/temporary_folder.hpp"
#include "node/admission_port.hpp"

namespace dtrain::cluster {
namespace {

// A head that admits every node.
class NodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!network_) GTEST_SKIP() << "no network of its own can be made here";
  }

  // Runs a node, and does this to it once it registers, and this when that connection is lost. The same process must
  // connect again then.
  void expect_another_connection(const std::function<void(net::Channel&, pid_t)>& spoil,
                                 const std::function<void(pid_t)>& recover) {
    const std::string secret(64, 'a');
    net::Loop loop;
    std::vector<std::shared_ptr<net::Channel>> channels;
    std::promise<void> came_again;
    bool is_spoilt = false;
    pid_t node = 0;
    net::Listener listener(loop, "127.0.0.1", "token", [&](const std::shared_ptr<net::Channel>& channel) {
      const bool is_first = channels.empty();
      channels.push_back(channel);
      channel->listen({.on_frame =
                           [&, is_first](const std::string&) {
                             if (is_first && !std::exchange(is_spoilt, true)) spoil(*channels.front(), node);
                           },
                       .on_close =
                           [&, is_first](const std::string&) {
                             if (is_first) recover(node);
                           }});
      if (channels.size() == 2) came_again.set_value();
    });
    const AdmissionPort admission(loop, "127.0.0.1", secret, [&](const Json& claim, const std::string& peer) {
      EXPECT_EQ(claim.at("document").as_string(), kDocument);
      EXPECT_EQ(peer, "127.0.0.1");
      return Json::object({{"port", std::int64_t{listener.port()}}, {"token", "token"}});
    });
    const net::HttpServer service(loop, "127.0.0.1", 0, metadata);
    node = ::fork();  // before there are threads
    if (node == 0) run(secret, service.port());
    std::thread running([&] { loop.run(); });
    EXPECT_EQ(came_again.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    int status = 0;
    EXPECT_EQ(::waitpid(node, &status, WNOHANG), 0) << "the node has ended";
    ::kill(node, SIGKILL);
    ::waitpid(node, &status, 0);
    loop.stop();
    running.join();
  }

  const TemporaryFolder folder_;

 private:
  [[noreturn]] void run(const std::string& secret, std::uint16_t service) const {
    ::setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", ("http://127.0.0.1:" + std::to_string(service)).c_str(), 1);
    ::setenv("PATH", folder_.path().c_str(), 1);
    NodeOptions options;
    options.order.cluster = "demo";
    options.order.head = "127.0.0.1";
    options.order.admission = secret;
    options.order.login = ::getpwuid(0)->pw_name;
    options.folder = folder_.path();
    run_node(options);
    ::_exit(0);
  }

  const OwnNetwork network_;
};

TEST_F(NodeTest, LivesOnWhenItsHeadSendsWhatItCannotRead) {
  expect_another_connection([](net::Channel& channel, pid_t) { channel.send("no JSON"); }, [](pid_t) {});
}

// It may open no more files, so no shell starts; one that did would find a `shutdown` that does nothing.
TEST_F(NodeTest, LivesOnWhenItCannotPowerOff) {
  write_file_atomic(folder_ / "shutdown", "#!/bin/sh\n", 0755);
  rlimit before{};
  const auto spoil = [&](net::Channel& channel, pid_t node) {
    ASSERT_EQ(::prlimit(node, RLIMIT_NOFILE, nullptr, &before), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(::prlimit(node, RLIMIT_NOFILE, &none, nullptr), 0);
    channel.send(Json::object({{"power_off", true}}).dump());
  };
  expect_another_connection(spoil, [&](pid_t node) { ::prlimit(node, RLIMIT_NOFILE, &before, nullptr); });
}

}  // namespace
}  // namespace dtrain::cluster
