#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;

Fleet fleet_with(Tags tags) {
  Fleet fleet{.name = "demo"};
  fleet.group = SecurityGroup{.id = "sg-1", .tags = std::move(tags)};
  return fleet;
}

TEST(Wish, ComesBackFromItsText) {
  EXPECT_EQ(wish_from(wish_text({.base = 4, .elastic = 2})), (Wish{.base = 4, .elastic = 2}));
  EXPECT_EQ(tagged_wish(fleet_with({})), std::nullopt);
  EXPECT_EQ(wish_from(wish_text({.base = 4, .budget = 49.5})), (Wish{.base = 4, .budget = 49.5}));
  EXPECT_LE(wish_text({.base = 10'000, .elastic = 10'000}).size(), 256U);
}

TEST(Wish, RefusesWhatItDoesNotUnderstand) {
  const auto problem = [](const std::string& text) -> std::string {
    try {
      (void)tagged_wish(fleet_with({{tag::kWish, text}}));
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  };
  const auto has = [&](const char* text, const char* why) { return problem(text).find(why) != std::string::npos; };
  EXPECT_TRUE(has("four", "dtrain:wish of the security group"));
  EXPECT_TRUE(has(R"({"schema":"dtrain.cluster-wish/2","base":1,"elastic":0})", "newer dtrain"));
  EXPECT_TRUE(has(R"({"schema":"dtrain.cluster-wish/1","base":1,"elastic":0,"colour":3})", "unknown key 'colour'"));
  EXPECT_TRUE(has(R"({"schema":"dtrain.cluster-wish/1","base":-1,"elastic":0})", "'base' is no number of workers"));
  EXPECT_TRUE(has(R"({"schema":"dtrain.cluster-wish/1","base":1})", "elastic"));
  EXPECT_TRUE(has(R"({"schema":"dtrain.cluster-wish/1","base":1,"elastic":0,"budget":0})", "'budget' is not above 0"));
  EXPECT_TRUE(has(R"({"schema":"something","base":1,"elastic":0})", "schema"));
}

TEST(Wish, OfAClusterWithoutOneCountsItsAddedWorkers) {
  Fleet fleet = fleet_with({});
  Node base{.name = "w0001", .base = true, .instance_id = "i-1", .state = "running"};
  Node added{.name = "w0002", .instance_id = "i-2", .state = "running", .launch = "1.x"};
  Node leaving = added;
  leaving.elastic_status = "REMOVAL_QUEUED";
  Node by_hand{.name = "i-9", .instance_id = "i-9", .state = "running"};
  fleet.nodes = {base, added, leaving, by_hand};
  EXPECT_EQ(wish_without_tag(fleet, 3), (Wish{.base = 3, .elastic = 1}));
}

TEST(Lease, LetsOneActAndTheNextAfterSilence) {
  const Lease lease = lease_from(lease_text({"host.12.ab", 1'000s}));
  EXPECT_EQ(lease_state(lease, "host.12.ab", 5'000s), LeaseState::mine);
  EXPECT_EQ(lease_state(lease, "other", 1'000s + kLeaseTime - 1s), LeaseState::taken);
  EXPECT_EQ(lease_state(lease, "other", 1'000s + kLeaseTime), LeaseState::free);
  EXPECT_EQ(lease_state(lease, "other", 1'000s - kLeaseTime), LeaseState::taken);
  EXPECT_EQ(lease_state(lease, "other", 1'000s - kLeaseTime - 1s), LeaseState::free) << "of a clock that was wrong";
  EXPECT_EQ(lease_state(lease_from("nonsense by hand"), "other", 1'000s), LeaseState::free);
  EXPECT_EQ(lease_state(lease_from(lease_text({"", 1'000s})), "other", 1'001s), LeaseState::free);
}

TEST(HealEvents, KeepTheLatest) {
  Fleet fleet = fleet_with({});
  for (int at = 1; at <= kKeptEvents + 3; ++at) {
    for (auto& [key, text] : event_tags(fleet, {{UnixTime(at), "event " + std::to_string(at)}})) {
      fleet.group->tags[key] = text;
    }
  }
  const std::vector<HealEvent> kept = tagged_events(fleet);
  ASSERT_EQ(kept.size(), static_cast<std::size_t>(kKeptEvents));
  EXPECT_EQ(kept.front(), (HealEvent{4s, "event 4"}));
  EXPECT_EQ(kept.back(), (HealEvent{UnixTime(kKeptEvents + 3), "event " + std::to_string(kKeptEvents + 3)}));
}

TEST(HealEvents, ThatOnlyRepeatTheLatestAreNotStored) {
  Fleet fleet = fleet_with({});
  const std::string refusal(300, 'x');
  const auto stored = [&](const std::vector<HealEvent>& events) {
    const Tags tags = event_tags(fleet, events);
    for (const auto& [key, text] : tags) fleet.group->tags[key] = text;
    return tags.size();
  };
  EXPECT_EQ(stored({{1s, refusal}}), 1U);
  EXPECT_EQ(stored({{2s, refusal}}), 0U);
  EXPECT_EQ(stored({{3s, refusal}, {3s, "of the added workers"}}), 1U);
  EXPECT_EQ(stored({{4s, refusal}, {4s, "of the added workers"}}), 0U) << "both fail at each look";
  EXPECT_EQ(stored({{5s, "started"}}), 1U);
  EXPECT_EQ(stored({{6s, refusal}}), 1U) << "something else came between";
  EXPECT_EQ(tagged_events(fleet).size(), 4U);
}

TEST(HealEvents, AreCutToFitATagAtWholeCharacters) {
  std::string text(229, 'x');
  text += "\u00e9\u00e9";
  for (const auto& [key, value] : event_tags(fleet_with({}), {{1s, text}})) {
    EXPECT_LE(value.size(), 256U);
    EXPECT_EQ(value.substr(2), std::string(229, 'x'));
  }
}

TEST(LeftOnPurpose, IsWhatTheUserRemovedAndNotWhatIsReplaced) {
  Node node{.name = "w0002", .instance_id = "i-2", .state = "running", .elastic_status = "REMOVED"};
  EXPECT_TRUE(left_on_purpose(node));
  node.tags[tag::kLeft] = "yes";
  EXPECT_FALSE(left_on_purpose(node));
  EXPECT_TRUE(leaves_on_purpose(node));
  node.tags[tag::kReplaced] = "i-3";
  EXPECT_FALSE(leaves_on_purpose(node));
}

}  // namespace
}  // namespace dtrain::cluster
