#include "node/time_limit.hpp"

#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;

TEST(TimeLimit, IsCountedFromTheStartOfTheMachine) {
  const TemporaryFolder folder;
  make_folder(folder / "proc");
  write_file_atomic(folder / "proc/uptime", "100.25 321.00\n");
  EXPECT_EQ(time_left(folder.path(), folder.path()), std::nullopt) << "it has none";
  write_file_atomic(folder / "ends", "3700\n");
  EXPECT_EQ(time_left(folder.path(), folder.path()), 3600s);
  write_file_atomic(folder / "ends", "90\n");
  EXPECT_EQ(time_left(folder.path(), folder.path()), 0s);
}

TEST(TimeLimit, OfALateWorkerIsThatOfItsHead) {
  const TimeLimit::Clock::time_point start{};
  TimeLimit limit;
  EXPECT_FALSE(limit.take_end(start + 1000h)) << "no head has said one";
  limit.hear(1h, start);
  EXPECT_FALSE(limit.take_end(start + 59min));
  EXPECT_TRUE(limit.take_end(start + 60min));
  EXPECT_FALSE(limit.take_end(start + 60min + 1s)) << "once";
  EXPECT_TRUE(limit.take_end(start + 62min)) << "the machine is still there";
}

TEST(TimeLimit, IsNotPutOffByALaterHead) {
  const TimeLimit::Clock::time_point start{};
  TimeLimit limit;
  limit.hear(1h, start);
  limit.hear(12h, start + 30min);
  EXPECT_TRUE(limit.take_end(start + 60min));
}

}  // namespace
}  // namespace dtrain::cluster
