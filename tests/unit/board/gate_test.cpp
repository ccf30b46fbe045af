#include "gate.hpp"

#include <gtest/gtest.h>

namespace dtrain::board {
namespace {

using Verdict = Gate::Verdict;
using namespace std::chrono_literals;

class GateTest : public testing::Test {
 protected:
  Verdict ask(const std::string& address, std::vector<std::pair<std::string, std::string>> headers = {},
              const std::string& peer = "127.0.0.1") {
    headers.emplace_back("host", "localhost:6007");
    return gate_.judge({.method = "GET", .path = address, .peer = peer, .headers = headers}, *parse_target(address),
                       now_);
  }
  Gate gate_{"secret", 6007};
  Gate::Time now_{};
};

TEST_F(GateTest, TheTokenOfTheAddressBecomesACookie) {
  EXPECT_EQ(ask("/"), Verdict::refused);
  EXPECT_EQ(ask("/?token=secret"), Verdict::remember);
  EXPECT_EQ(ask("/", {{"cookie", "other=1; dtrain_board_6007=secret"}}), Verdict::enter);
  EXPECT_EQ(ask("/", {{"cookie", "dtrain_board_6008=secret"}}), Verdict::refused);
  EXPECT_NE(gate_.cookie().find("HttpOnly; SameSite=Strict"), std::string::npos);
}

TEST_F(GateTest, AFewWrongTokensAreAllowedThenTimeMustPass) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ask("/?token=guess"), Verdict::refused);
  EXPECT_EQ(ask("/?token=guess"), Verdict::exhausted);
  EXPECT_EQ(ask("/?token=guess", {}, "10.0.0.9"), Verdict::refused);
  now_ += 61s;
  EXPECT_EQ(ask("/?token=guess"), Verdict::refused);
}

TEST_F(GateTest, WrongTokensOfOthersDoNotKeepOutWhoKnowsIt) {
  for (int i = 0; i < 20; ++i) ask("/?token=guess");
  EXPECT_EQ(ask("/?token=secret"), Verdict::remember);
  EXPECT_EQ(ask("/", {{"cookie", "dtrain_board_6007=secret"}}), Verdict::enter);
}

TEST_F(GateTest, ThePageOfAnEarlierBoardMayAskOn) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("/api/board", {{"cookie", "dtrain_board_6007=old"}}), Verdict::refused);
  EXPECT_EQ(ask("/?token=guess"), Verdict::refused) << "its cookies were counted";
}

TEST(Gate, OpensOnceWithTheWordThatABrowserIsGiven) {
  Gate gate("secret", 6007, "127.0.0.1", "word");
  EXPECT_FALSE(gate.open_with(""));
  EXPECT_FALSE(gate.open_with("secret"));
  EXPECT_TRUE(gate.open_with("word"));
  EXPECT_FALSE(gate.open_with("word"));
  EXPECT_FALSE(Gate("secret", 6007).open_with(""));
}

TEST_F(GateTest, ACrowdOfAddressesDoesNotFillTheMemoryNorFreeItself) {
  for (int i = 0; i < 5000; ++i) ask("/?token=guess", {}, "10.0." + std::to_string(i / 250) + "." + std::to_string(i));
  for (int i = 0; i < 10; ++i) ask("/?token=guess");
  EXPECT_EQ(ask("/?token=guess"), Verdict::exhausted);
}

TEST_F(GateTest, APageOfAnotherSiteMayNotAsk) {
  const std::string cookie = "dtrain_board_6007=secret";
  EXPECT_EQ(ask("/api/action", {{"cookie", cookie}, {"origin", "http://evil.example"}}), Verdict::stranger);
  EXPECT_EQ(ask("/api/action", {{"cookie", cookie}, {"origin", "http://localhost:6007"}}), Verdict::enter);
}

TEST(Gate, WithoutATokenOnlyTheNamesOfThisMachineLeadToThePage) {
  Gate gate("", 6007);
  const auto ask = [&](const std::string& host) {
    return gate.judge({.method = "GET", .path = "/", .headers = {{"host", host}}}, *parse_target("/"), {});
  };
  EXPECT_EQ(ask("localhost:6007"), Verdict::enter);
  EXPECT_EQ(ask("127.0.0.1"), Verdict::enter);
  EXPECT_EQ(ask("[::1]:6007"), Verdict::enter);
  for (const char* host : {"", "evil.example:6007", "localhost.evil.example", "127.0.0.1:6007:1"})
    EXPECT_EQ(ask(host), Verdict::stranger) << host;
}

TEST(Gate, TheAddressThatTheUserChoseLeadsToThePage) {
  const auto ask = [](const std::string& address, const std::string& host) {
    return Gate("", 6007, address)
        .judge({.method = "GET", .path = "/", .headers = {{"host", host}}}, *parse_target("/"), {});
  };
  EXPECT_EQ(ask("127.0.0.2", "127.0.0.2:6007"), Verdict::enter);
  EXPECT_EQ(ask("127.0.0.2", "127.0.0.3:6007"), Verdict::stranger);
  EXPECT_EQ(ask("127.0.0.1", "127.0.0.2:6007"), Verdict::stranger);
}

}  // namespace
}  // namespace dtrain::board
