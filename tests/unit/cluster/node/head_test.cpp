#include <dtrain/cluster/head.hpp>

#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/registry.hpp>
#include <dtrain/launcher/agent_registry.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/http_server.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "cluster/node/one_machine.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;

// A head in a process of its own, on the machine of the test.
class HeadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!network_) GTEST_SKIP() << "no network of its own can be made here";
    service_ = std::make_unique<net::HttpServer>(loop_, "127.0.0.1", 0, metadata);
    head_ = ::fork();  // before there are threads
    if (head_ == 0) run();
    serving_ = std::thread([this] { loop_.run(); });
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!registry_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(20ms);
      registry_ = launcher::read_agent_registry(folder_ / "registry.json");
    }
    ASSERT_TRUE(registry_);
  }

  ~HeadTest() override {
    if (head_ > 0) {
      ::kill(head_, SIGKILL);
      ::waitpid(head_, nullptr, 0);
    }
    loop_.stop();
    if (serving_.joinable()) serving_.join();
  }

  std::shared_ptr<net::Channel> connect(std::function<void(const Json&)> on_frame) {
    auto channel = net::connect_channel(loop_, registry_->address, registry_->port, registry_->token, 10s);
    channel->listen({.on_frame = [heard = std::move(on_frame)](
                                     const std::string& frame) { heard(Json::parse(frame, "a frame of the head")); },
                     .on_close = [](const std::string&) {}});
    return channel;
  }

  net::Loop loop_;

 private:
  [[noreturn]] void run() const {
    ::setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", ("http://127.0.0.1:" + std::to_string(service_->port())).c_str(), 1);
    HeadOptions options;
    options.order.cluster = "demo";
    options.order.admission = std::string(64, 'a');
    options.order.login = ::getpwuid(0)->pw_name;
    options.folder = folder_.path();
    run_head(options);
    ::_exit(0);
  }

  const OwnNetwork network_;
  const TemporaryFolder folder_;
  std::unique_ptr<net::HttpServer> service_;
  pid_t head_ = 0;
  std::thread serving_;
  std::optional<launcher::AgentRegistry> registry_;
};

TEST_F(HeadTest, AnswersForANodeThatIsLostMeanwhile) {
  std::promise<void> registered, started;
  std::promise<Json> told, checked;
  std::shared_ptr<net::Channel> node = connect([&](const Json& message) {
    if (message.find("facts")) registered.set_value();
    if (message.find("start")) started.set_value();
  });
  node->send(Json::object({{"ask", "register"},
                           {"node", to_json(NodeFacts{.identity = identity_from(kDocument), .name = "w0001"})}})
                 .dump());
  ASSERT_EQ(registered.get_future().wait_for(60s), std::future_status::ready);
  const auto client = connect([&](const Json& answer) { (answer.find("reports") ? checked : told).set_value(answer); });
  client->send(Json::object({{"ask", "check"}, {"seconds", 600}}).dump());
  client->send(Json::object({{"ask", "start"}, {"host", "w0001"}, {"join", Json::object()}, {"id", 7}}).dump());
  ASSERT_EQ(started.get_future().wait_for(60s), std::future_status::ready);
  loop_.post([lost = std::exchange(node, nullptr)]() mutable { lost.reset(); });
  auto start = told.get_future(), check = checked.get_future();
  ASSERT_EQ(start.wait_for(10s), std::future_status::ready);
  const Json answer = start.get();
  EXPECT_EQ(answer.at("id"), Json(7));
  EXPECT_EQ(answer.at("error").as_string(), "w0001: its node was lost before its agent had started");
  ASSERT_EQ(check.wait_for(10s), std::future_status::ready) << "a check ends by itself after 20 s";
  EXPECT_TRUE(check.get().at("reports").as_object().empty());
}

}  // namespace
}  // namespace dtrain::cluster
