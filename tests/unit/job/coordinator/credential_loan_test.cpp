#include <gtest/gtest.h>

#include <atomic>

#include "coordinator/credential_loan.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

class SilentCrew final : public elastic::Crew {
 public:
  void start_host(const elastic::HostLine&) override {}
  void try_gate(const std::string&) override {}
  void start_worker(const std::string&, int, elastic::WorkerId) override {}
  void send(elastic::WorkerId worker, const elastic::ToWorker& message) override {
    sent.emplace_back(worker, std::get<elastic::Lend>(message).credentials);
  }
  void kill_worker(elastic::WorkerId, bool) override {}
  void end_host(const std::string&) override {}
  std::vector<std::pair<elastic::WorkerId, std::string>> sent;
};

class Loan : public testing::Test {
 protected:
  Loan() {
    settings.environment = [this](const std::string& name) -> std::optional<std::string> {
      if (name == "AWS_ACCESS_KEY_ID") return "key" + std::to_string(version.load());
      if (name == "AWS_SECRET_ACCESS_KEY") return "secret";
      if (name == "AWS_EC2_METADATA_DISABLED") return "true";
      return std::nullopt;
    };
  }
  void come(CredentialLoan& loan, elastic::WorkerId worker) {
    loan.hear(elastic::WorkerSays{worker, elastic::Hello{}});
  }
  void send_until(CredentialLoan& loan, std::size_t count) {
    for (int tries = 0; crew.sent.size() < count && tries < 2000; ++tries) {
      loan.send_news(crew);
      std::this_thread::sleep_for(5ms);
    }
    ASSERT_EQ(crew.sent.size(), count);
  }
  std::string key(std::size_t which) { return net::credentials_from(crew.sent[which].second, "test").access_key; }

  std::atomic<int> version = 1;
  net::AwsSettings settings;
  SilentCrew crew;
};

TEST_F(Loan, IsSentOnceToEachWorkerThatComes) {
  CredentialLoan loan(settings);
  come(loan, 7);
  send_until(loan, 1);
  come(loan, 8);
  send_until(loan, 2);
  loan.send_news(crew);
  EXPECT_EQ(crew.sent.size(), 2u);
  EXPECT_EQ(crew.sent[0].first, 7u);
  EXPECT_EQ(crew.sent[1].first, 8u);
  EXPECT_EQ(key(1), "key1");
}

TEST_F(Loan, ReachesWorkersOfAnEarlierCoordinator) {
  CredentialLoan loan(settings);
  loan.inherit({{.host = "h", .address = "", .circles = {}, .workers = {{.worker = 3, .slot = 0, .said = {}}}}});
  send_until(loan, 1);
  EXPECT_EQ(crew.sent[0].first, 3u);
}

TEST_F(Loan, ForgetsWorkersThatEnded) {
  CredentialLoan loan(settings);
  come(loan, 7);
  loan.hear(elastic::WorkerExited{.worker = 7, .exit_code = 0, .signal = 0, .last_lines = {}});
  come(loan, 8);
  send_until(loan, 1);
  EXPECT_EQ(crew.sent[0].first, 8u);
}

TEST_F(Loan, IsEmptyWhereTheCoordinatorHasNone) {
  settings.environment = [](const std::string& name) -> std::optional<std::string> {
    return name == "AWS_EC2_METADATA_DISABLED" ? std::optional<std::string>("true") : std::nullopt;
  };
  CredentialLoan loan(settings);
  come(loan, 7);
  send_until(loan, 1);
  EXPECT_EQ(crew.sent[0].second, "");
}

TEST_F(Loan, IsRenewedForAllBeforeItExpires) {
  std::atomic<std::time_t> now = 1'000'000;
  settings.clock = [&] { return std::chrono::system_clock::from_time_t(now); };
  net::LentCredentials source;
  source.take({.access_key = "old", .secret_key = "s", .expires = settings.clock() + 5min});
  settings.lent = std::shared_ptr<const net::LentCredentials>(&source, [](const auto*) {});
  CredentialLoan loan(settings, 10ms);
  come(loan, 7);
  send_until(loan, 1);
  source.take({.access_key = "new", .secret_key = "s", .expires = settings.clock() + 1h});
  now += 60;
  send_until(loan, 2);
  EXPECT_EQ(key(0), "old");
  EXPECT_EQ(key(1), "new");
}

}  // namespace
}  // namespace dtrain::job
