#include "cli/commands/job/since_time.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::cli {
namespace {

std::string since(const std::string& text) {
  const elastic::WallTime now{std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12)};
  return elastic::format_time(since_time(text, now, "--since"));
}

TEST(SinceTime, IsATimeAgo) {
  EXPECT_EQ(since("0s"), "2026-01-31T12:00:00.000000Z");
  EXPECT_EQ(since("90s"), "2026-01-31T11:58:30.000000Z");
  EXPECT_EQ(since("2h"), "2026-01-31T10:00:00.000000Z");
  EXPECT_EQ(since("1d"), "2026-01-30T12:00:00.000000Z");
}

TEST(SinceTime, IsATimeOfAnyPlace) {
  for (const char* same : {"2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31 12:00:00", "2026-01-31T12:00",
                           "2026-01-31T12:00:00.000Z", "2026-01-31T13:00:00+01:00", "2026-01-31 13:00:00 +0100",
                           "2026-01-31T08:30-03:30", "2026-02-01T00:00:00+12"}) {
    EXPECT_EQ(since(same), "2026-01-31T12:00:00.000000Z") << same;
  }
  EXPECT_EQ(since("2026-01-31"), "2026-01-31T00:00:00.000000Z");
  EXPECT_EQ(since("2026-01-31T23:59:59.25Z"), "2026-01-31T23:59:59.250000Z");
}

TEST(SinceTime, OfAnythingElseIsRefused) {
  for (const char* other :
       {"soon", "", "10", "-5m", "99999999999999999d", "2026-01-31T25:00:00Z", "2026-02-30", "2026-01-31T12:00:00 CET",
        "2026-01-31T12", "2026-01-31x12:00:00Z", "2026-01-31T12:00:00+1:00", "2026-01-31T12:00:00+99:00"}) {
    EXPECT_THROW(since(other), UsageError) << other;
  }
}

}  // namespace
}  // namespace dtrain::cli
