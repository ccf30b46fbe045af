#include "s3/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common/few_threads.hpp"

namespace dtrain::net {
namespace {

// The rate grows with each thread, so that more are asked for until the system gives no more.
TEST(Pieces, AreTakenByTheThreadsThatTheSystemGives) {
  std::atomic<int> done = 0;
  const FewThreads few;
  EXPECT_NO_THROW(for_each_piece(400, 64, [&](std::size_t, const Came& came) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    came(1);
    ++done;
  }));
  EXPECT_EQ(done, 400);
}

}  // namespace
}  // namespace dtrain::net
