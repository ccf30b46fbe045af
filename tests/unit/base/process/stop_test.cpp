#include <gtest/gtest.h>

#include <csignal>

#include <dtrain/base/stop.hpp>

namespace dtrain {
namespace {

class StopTest : public testing::Test {
 protected:
  void TearDown() override {
    reset_stop_signal();
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(StopTest, RemembersTheFirstSignalAndCountsAll) {
  watch_stop_signals(2);
  EXPECT_EQ(stop_signal(), 0);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT_EQ(stop_signal(), SIGTERM);
  EXPECT_EQ(stop_signals(), 2);
}

TEST_F(StopTest, TheSecondOfAKindEndsTheProcess) {
  const auto twice = [] {
    watch_stop_signals();
    std::raise(SIGINT);
    std::raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopTest, TheThirdEndsOneThatHearsTwo) {
  const auto thrice = [] {
    watch_stop_signals(2);
    std::raise(SIGINT);
    std::raise(SIGINT);
    if (stop_signals() == 2) std::raise(SIGINT);
  };
  EXPECT_EXIT(thrice(), testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopTest, HangUpsAreOneRequestHoweverOftenTheyCome) {
  watch_stop_signals(2);
  for (int i = 0; i < 4; ++i) std::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), SIGHUP);
  EXPECT_EQ(stop_signals(), 1);
  std::raise(SIGINT);
  EXPECT_EQ(stop_signals(), 2);
}

TEST_F(StopTest, AHangUpIsIgnoredWhereItWas) {
  std::signal(SIGHUP, SIG_IGN);
  watch_stop_signals();
  std::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), 0);
}

}  // namespace
}  // namespace dtrain
