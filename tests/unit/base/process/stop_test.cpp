#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <dtrain/base/stop.hpp>

namespace dtrain {
namespace {

constexpr std::chrono::milliseconds kNextRequest{350};

class StopTest : public testing::Test {
 protected:
  void TearDown() override {
    reset_stop_signal();
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) std::signal(signal, SIG_DFL);
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
    std::this_thread::sleep_for(kNextRequest);
    std::raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopTest, TheThirdEndsOneThatHearsTwo) {
  const auto thrice = [] {
    watch_stop_signals(2);
    for (int i = 0; i < 2; ++i) {
      std::raise(SIGINT);
      std::this_thread::sleep_for(kNextRequest);
    }
    if (stop_signals() == 2) std::raise(SIGINT);
  };
  EXPECT_EXIT(thrice(), testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopTest, TheFirstEndsAProcessThatAsksNoMore) {
  const auto once = [] {
    watch_stop_signals();
    end_at_stop_signals();
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(once(), testing::KilledBySignal(SIGTERM), "");
}

// As timeout(1) sends it: to the process, and then to its group.
TEST_F(StopTest, TheSameSignalAtOnceIsOneRequest) {
  watch_stop_signals();
  for (int i = 0; i < 3; ++i) std::raise(SIGTERM);
  EXPECT_EQ(stop_signals(), 1);
}

TEST_F(StopTest, ALostReaderOfTheOutputIsARequest) {
  const auto write_to_nobody = [] {
    std::signal(SIGPIPE, SIG_DFL);
    watch_stop_signals();
    watch_for_lost_reader();
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    ::close(ends[0]);
    (void)!::write(ends[1], "x", 1);
    const bool ignored = stop_signal() == 0;  // it is not stdout
    ::dup2(ends[1], STDOUT_FILENO);
    for (int i = 0; i < 3; ++i) (void)!::write(STDOUT_FILENO, "x", 1);
    ::_exit(ignored && stop_signal() == SIGPIPE && stop_signals() == 1 ? 0 : 1);
  };
  EXPECT_EXIT(write_to_nobody(), testing::ExitedWithCode(0), "");
}

TEST_F(StopTest, HangUpsAreOneRequestHoweverOftenTheyCome) {
  watch_stop_signals(2);
  for (int i = 0; i < 4; ++i) std::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), SIGHUP);
  EXPECT_EQ(stop_signals(), 1);
  std::raise(SIGINT);
  EXPECT_EQ(stop_signals(), 2);
}

// As `qsub -notify`, s_rt, s_cpu and `sbatch --signal` send them.
TEST_F(StopTest, ASchedulersWarningIsOneRequestHoweverOftenItComes) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGXCPU}) {
    const auto warned = [signal] {
      watch_stop_signals();
      for (int i = 0; i < 2; ++i) {
        std::raise(signal);
        std::this_thread::sleep_for(kNextRequest);
      }
      const bool begun = stop_signal() == signal && stop_signals() == 1;
      std::raise(SIGTERM);
      ::_exit(begun && stop_signals() == 2 ? 0 : 1);
    };
    EXPECT_EXIT(warned(), testing::ExitedWithCode(0), "") << signal;
  }
}

TEST_F(StopTest, AWarningIsIgnoredWhereItWas) {
  std::signal(SIGUSR2, SIG_IGN);
  watch_stop_signals();
  std::raise(SIGUSR2);
  EXPECT_EQ(stop_signal(), 0);
}

TEST_F(StopTest, AHangUpIsIgnoredWhereItWas) {
  std::signal(SIGHUP, SIG_IGN);
  watch_stop_signals();
  std::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), 0);
}

TEST_F(StopTest, ASignalEndsAPause) {
  watch_stop_signals();
  EXPECT_TRUE(pause_unless_stopped(std::chrono::milliseconds(1)));
  std::raise(SIGTERM);
  EXPECT_FALSE(pause_unless_stopped(std::chrono::hours(1)));
}

}  // namespace
}  // namespace dtrain
