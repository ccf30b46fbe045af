#include <gtest/gtest.h>

#include <dtrain/base/clock.hpp>

namespace dtrain {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, WritesATimeInUtc) {
  EXPECT_EQ(utc_text(0s), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1'795'851'043s), "2026-11-28T07:30:43Z");
}

TEST(ClockTest, ReadsATimeOfAnyPlace) {
  for (const char* same :
       {"2026-11-28T07:30:43Z", "2026-11-28T07:30:43", "2026-11-28T07:30:43UTC", "2026-11-28T07:30:43.123456Z",
        "2026-11-27T23:30:43-08:00", "2026-11-28T13:00:43+0530", "2026-11-28T08:30:43.5+01"})
    EXPECT_EQ(unix_time_of(same), 1'795'851'043s) << same;
  for (const char* other : {"", "soon", "2026-11-28", "2026-11-28T07:30Z", "2026-11-28T25:30:43Z",
                            "2026-11-28T07:30:43 CET", "2026-11-28T07:30:43+1:00", "2026-11-28T07:30:43Z2"})
    EXPECT_EQ(unix_time_of(other), std::nullopt) << other;
}

TEST(ClockTest, CountsSecondsSince1970) { EXPECT_GT(utc_text(unix_now()), "2024-01-01"); }

}  // namespace
}  // namespace dtrain
