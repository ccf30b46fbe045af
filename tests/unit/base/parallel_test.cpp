#include <dtrain/base/parallel.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace dtrain {
namespace {

TEST(Parallel, EveryItemIsDoneOnce) {
  std::vector<std::atomic<int>> done(1000);
  for_each_in_parallel(done.size(), [&](std::size_t i) { ++done[i]; });
  try_each_in_parallel(done.size(), 7, [&](std::size_t i) { ++done[i]; });
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 2);
  for_each_in_parallel(0, [](std::size_t) { FAIL(); });
  try_each_in_parallel(0, 7, [](std::size_t) { FAIL(); });
}

TEST(Parallel, AFailureIsThrown) {
  const auto act = [](std::size_t i) {
    if (i == 0) throw std::runtime_error("first");
  };
  EXPECT_THROW(for_each_in_parallel(1000, act), std::runtime_error);
}

TEST(Parallel, AllAreTriedAndTheLowestFailureIsThrown) {
  std::atomic<int> tried = 0;
  const auto act = [&](std::size_t i) {
    ++tried;
    if (i >= 10) throw std::runtime_error(std::to_string(i));
  };
  try {
    try_each_in_parallel(100, 4, act);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "10");
  }
  EXPECT_EQ(tried, 100);
}

}  // namespace
}  // namespace dtrain
