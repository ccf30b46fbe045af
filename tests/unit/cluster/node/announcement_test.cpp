#include <gtest/gtest.h>

#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/power.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {
namespace {

Fleet fleet_with(std::optional<double> budget, double dollars) {
  Fleet fleet{.name = "demo"};
  fleet.group.emplace().tags = {{tag::kWish, wish_text({.base = 2, .budget = budget})},
                                {tag::kSpent, spending_text({.dollars = dollars})}};
  return fleet;
}

// Why the head is to hold the queue; empty: it is not.
std::string hold_in(const Fleet& fleet) {
  const Json said = announcement(fleet);
  const Json* hold = said.find("hold");
  return hold ? hold->as_string() : std::string();
}

TEST(Announcement, HoldsTheQueueWhileTheBudgetIsSpent) {
  EXPECT_EQ(hold_in(fleet_with(50, 49)), "");
  EXPECT_EQ(hold_in(fleet_with(50, 60)), "$60.00 of the budget of $50.00 are spent");
  EXPECT_EQ(hold_in(fleet_with(90, 60)), "") << "it was raised";
  EXPECT_EQ(hold_in(fleet_with(std::nullopt, 60)), "") << "there is no limit any more";
}

TEST(Announcement, HoldsTheQueueWhileTheClusterIsToStop) {
  Fleet fleet = fleet_with(std::nullopt, 0);
  fleet.group->tags[tag::kStopped] = "2026-01-31T12:00:00Z";
  EXPECT_EQ(hold_in(fleet), "the cluster is to stop");
  fleet.group->tags[tag::kStopped] = "";
  EXPECT_EQ(hold_in(fleet), "");
}

TEST(Announcement, OfTagsThatAreNonsenseHoldsNothing) {
  Fleet fleet = fleet_with(50, 60);
  fleet.group->tags[tag::kSpent] = "much";
  EXPECT_EQ(hold_in(fleet), "");
  EXPECT_EQ(hold_in({.name = "demo"}), "") << "without a group";
}

}  // namespace
}  // namespace dtrain::cluster
