#include "elastic/agent/background_tasks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

TEST(BackgroundTasks, ManyAtOnceAreAllDoneByABoundedNumberOfThreads) {
  constexpr int kTasks = 2500;
  net::Loop loop;
  BackgroundTasks tasks(loop);
  std::atomic<int> running = 0, most = 0;
  int done = 0;
  for (int i = 0; i < kTasks; ++i) {
    tasks.run(
        [&, i]() -> std::function<void()> {
          const int now = ++running;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
          std::this_thread::sleep_for(200ms);
          --running;
          if (i % 2 == 1) throw std::runtime_error("counts as done, without a result");
          return [&] {
            if (++done == kTasks / 2) loop.stop();
          };
        },
        [] { ADD_FAILURE() << "no thread is refused here"; });
  }
  loop.run();
  EXPECT_EQ(done, kTasks / 2);
  EXPECT_LE(most, 2048);
  EXPECT_GT(most, 256);
}

}  // namespace
}  // namespace dtrain::elastic
