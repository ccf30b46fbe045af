#include <gtest/gtest.h>

#include <dtrain/base/event_kind.hpp>

#include "records/earlier_work.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

Json first_step_at(const char* time, double pause) {
  return make_event(EventKind::generation, {{"time", time}, {"pause_seconds", pause}});
}

TEST(EarlierWork, BeginsWithTheFirstStepAndCountsThePausesAfterIt) {
  const std::vector<Json> events = {
      make_event(EventKind::hosts, {{"list", 1}}), first_step_at("1970-01-01T00:01:40.500000Z", 30),
      first_step_at("1970-01-01T00:03:00.000000Z", 4), first_step_at("1970-01-01T00:04:00.000000Z", 0.5)};
  const std::optional<EarlierWork> work = earlier_work_in(events);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->first_step, WallTime(100s));
  EXPECT_DOUBLE_EQ(work->paused.count(), 4.5);
}

TEST(EarlierWork, OfAnEarlierRunInTheSameFolderDoesNotCount) {
  const Json step = first_step_at("1970-01-01T00:01:40Z", 0);
  EXPECT_FALSE(earlier_work_in({step, make_event(EventKind::finish)}));
  EXPECT_FALSE(earlier_work_in({step, make_event(EventKind::hosts, {{"list", 1}})}));
  EXPECT_TRUE(earlier_work_in({step, make_event(EventKind::hosts, {{"list", 2}})}));
}

TEST(EarlierWork, DamagedEventsArePassedOver) {
  EXPECT_FALSE(earlier_work_in({Json(3), make_event(EventKind::generation), make_event(EventKind::hosts)}));
}

}  // namespace
}  // namespace dtrain::elastic
