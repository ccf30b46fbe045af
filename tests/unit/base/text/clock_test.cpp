#include <gtest/gtest.h>

#include <dtrain/base/clock.hpp>

namespace dtrain {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, WritesATimeInUtc) {
  EXPECT_EQ(utc_text(0s), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1'795'851'043s), "2026-11-28T07:30:43Z");
}

TEST(ClockTest, CountsSecondsSince1970) { EXPECT_GT(utc_text(unix_now()), "2024-01-01"); }

}  // namespace
}  // namespace dtrain
