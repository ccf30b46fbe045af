#include <gtest/gtest.h>

#include "agent/decide_enlist.hpp"

namespace dtrain::job {
namespace {

using elastic::HostPhase;

// Of the three kinds of processes: one that has just come, the same with an agent, one that has settled before.
struct EnlistRow {
  std::optional<HostPhase> phase;
  Enlist comes, has_agent, has_settled;
};

constexpr EnlistRow kEnlistRows[] = {
    {std::nullopt, Enlist::add, Enlist::add, Enlist::add},
    {HostPhase::absent, Enlist::settled, Enlist::settled, Enlist::settled},
    {HostPhase::starting, Enlist::wait, Enlist::settled, Enlist::settled},
    {HostPhase::preparing, Enlist::wait, Enlist::settled, Enlist::settled},
    {HostPhase::ready, Enlist::wait, Enlist::settled, Enlist::settled},
    {HostPhase::member, Enlist::wait, Enlist::settled, Enlist::settled},
    {HostPhase::leaving, Enlist::wait, Enlist::wait, Enlist::wait},
    {HostPhase::failed, Enlist::remove_then_add, Enlist::remove_then_add, Enlist::settled},
    {HostPhase::quarantined, Enlist::remove_then_add, Enlist::remove_then_add, Enlist::settled},
    {HostPhase::spare, Enlist::settled, Enlist::settled, Enlist::settled},
    {HostPhase::drained, Enlist::remove_then_add, Enlist::remove_then_add, Enlist::settled},
};

TEST(DecideEnlist, FollowsThePhaseAndWhatTheProcessHasDoneBefore) {
  for (const EnlistRow& row : kEnlistRows) {
    const std::string phase = row.phase ? enum_name(elastic::kHostPhaseNames, *row.phase) : "not listed";
    EXPECT_EQ(decide_enlist({.phase = row.phase, .looks_at_order = 1}), row.comes) << phase;
    EXPECT_EQ(decide_enlist({.phase = row.phase, .has_agent = true}), row.has_agent) << phase;
    EXPECT_EQ(decide_enlist({.phase = row.phase, .is_new = false}), row.has_settled) << phase;
    EXPECT_EQ(decide_enlist({.phase = row.phase, .is_new = false, .has_agent = true}), row.has_settled) << phase;
  }
}

TEST(DecideEnlist, GivesUpAnOrderThatTheProcessDoesNotGet) {
  HostSeen seen{.phase = HostPhase::starting, .looks_at_order = kLooksAtOrder - 1};
  EXPECT_TRUE(awaits_order(seen));
  EXPECT_EQ(decide_enlist(seen), Enlist::wait);
  seen.looks_at_order = kLooksAtOrder;
  EXPECT_EQ(decide_enlist(seen), Enlist::remove_then_add);
}

TEST(DecideEnlist, CountsLooksAtAnOrderOfAFormerProcessAlone) {
  EXPECT_FALSE(awaits_order({.phase = HostPhase::starting, .has_agent = true}));
  EXPECT_FALSE(awaits_order({.phase = HostPhase::starting, .is_new = false}));
  EXPECT_FALSE(awaits_order({.phase = HostPhase::failed}));
  EXPECT_FALSE(awaits_order({}));
}

// The coordinator refuses to remove the last host of its list.
TEST(DecideEnlist, DoesNotRemoveTheOnlyHost) {
  EXPECT_EQ(decide_enlist({.has_other_hosts = false, .phase = HostPhase::failed}), Enlist::add);
  EXPECT_EQ(decide_enlist({.has_other_hosts = false, .phase = HostPhase::starting, .looks_at_order = kLooksAtOrder}),
            Enlist::add);
}

}  // namespace
}  // namespace dtrain::job
