#include <gtest/gtest.h>

#include <atomic>

#include "coordinator/credential_forwarder.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

class SilentAgentPool final : public elastic::AgentPool {
 public:
  void start_host(const elastic::HostLine&) override {}
  void run_admission_check(const std::string&) override {}
  void start_worker(const std::string&, int, elastic::WorkerId) override {}
  void send(elastic::WorkerId worker, const elastic::ToWorker& message) override {
    sent.emplace_back(worker, std::get<elastic::UpdateCredentials>(message).credentials);
  }
  void send_all(const std::vector<elastic::WorkerId>& workers, const elastic::ToWorker& message) override {
    for (const elastic::WorkerId worker : workers) send(worker, message);
  }
  void kill_worker(elastic::WorkerId, bool) override {}
  void end_host(const std::string&) override {}
  void announce_voters(elastic::Generation, bool, const std::vector<elastic::Member>&) override {}
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point) const override {
    return names.size();
  }
  std::vector<std::pair<elastic::WorkerId, std::string>> sent;
};

class CredentialForwarderTest : public testing::Test {
 protected:
  CredentialForwarderTest() {
    settings.environment = [this](const std::string& name) -> std::optional<std::string> {
      if (name == "AWS_ACCESS_KEY_ID") return "key" + std::to_string(version.load());
      if (name == "AWS_SECRET_ACCESS_KEY") return "secret";
      if (name == "AWS_EC2_METADATA_DISABLED") return "true";
      return std::nullopt;
    };
  }
  void come(CredentialForwarder& forwarder, elastic::WorkerId worker) {
    forwarder.hear(elastic::WorkerSays{worker, elastic::Hello{}});
  }
  void send_until(CredentialForwarder& forwarder, std::size_t count) {
    for (int tries = 0; agent_pool.sent.size() < count && tries < 2000; ++tries) {
      forwarder.send_news(agent_pool);
      std::this_thread::sleep_for(5ms);
    }
    ASSERT_EQ(agent_pool.sent.size(), count);
  }
  std::string key(std::size_t which) { return net::credentials_from(agent_pool.sent[which].second, "test").access_key; }

  std::atomic<int> version = 1;
  net::AwsSettings settings;
  SilentAgentPool agent_pool;
};

TEST_F(CredentialForwarderTest, IsSentOnceToEachWorkerThatComes) {
  CredentialForwarder forwarder(settings);
  come(forwarder, 7);
  send_until(forwarder, 1);
  come(forwarder, 8);
  send_until(forwarder, 2);
  forwarder.send_news(agent_pool);
  EXPECT_EQ(agent_pool.sent.size(), 2u);
  EXPECT_EQ(agent_pool.sent[0].first, 7u);
  EXPECT_EQ(agent_pool.sent[1].first, 8u);
  EXPECT_EQ(key(1), "key1");
}

TEST_F(CredentialForwarderTest, ReachesWorkersOfAnEarlierCoordinator) {
  CredentialForwarder forwarder(settings);
  forwarder.inherit({{.host = "h", .address = "", .voters = {}, .workers = {{.worker = 3, .slot = 0, .said = {}}}}});
  send_until(forwarder, 1);
  EXPECT_EQ(agent_pool.sent[0].first, 3u);
}

TEST_F(CredentialForwarderTest, ForgetsWorkersThatEnded) {
  CredentialForwarder forwarder(settings);
  come(forwarder, 7);
  forwarder.hear(elastic::WorkerExited{.worker = 7, .exit_code = 0, .signal = 0, .last_lines = {}});
  come(forwarder, 8);
  send_until(forwarder, 1);
  EXPECT_EQ(agent_pool.sent[0].first, 8u);
}

TEST_F(CredentialForwarderTest, IsEmptyWhereTheCoordinatorHasNone) {
  settings.environment = [](const std::string& name) -> std::optional<std::string> {
    return name == "AWS_EC2_METADATA_DISABLED" ? std::optional<std::string>("true") : std::nullopt;
  };
  CredentialForwarder forwarder(settings);
  come(forwarder, 7);
  send_until(forwarder, 1);
  EXPECT_EQ(agent_pool.sent[0].second, "");
}

TEST_F(CredentialForwarderTest, IsRenewedForAllBeforeItExpires) {
  std::atomic<std::time_t> now = 1'000'000;
  settings.clock = [&] { return std::chrono::system_clock::from_time_t(now); };
  net::DelegatedCredentials source;
  source.take({.access_key = "old", .secret_key = "s", .expires = settings.clock() + 5min});
  settings.delegated = std::shared_ptr<const net::DelegatedCredentials>(&source, [](const auto*) {});
  CredentialForwarder forwarder(settings, 10ms);
  come(forwarder, 7);
  send_until(forwarder, 1);
  source.take({.access_key = "new", .secret_key = "s", .expires = settings.clock() + 1h});
  now += 60;
  send_until(forwarder, 2);
  EXPECT_EQ(key(0), "old");
  EXPECT_EQ(key(1), "new");
}

}  // namespace
}  // namespace dtrain::job
