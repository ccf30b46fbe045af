#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/tagged_prices.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;

constexpr UnixTime kNoon = 1'769'860'800s;  // 2026-01-31 12:00:00 UTC

Node machine(const std::string& type, const std::string& launch_time) {
  return {.name = "w0001", .instance_id = "i-1", .state = "running", .type = type, .launch_time = launch_time};
}

Node ended(Node node, const std::string& at) {
  node.state = "terminated";
  node.ended_at = at;
  return node;
}

std::optional<double> two_dollars(const Node& node) {
  return node.type == "p9.large" ? std::nullopt : std::optional(2.0);
}

double spent_by(const Node& node, const Spending& before = {}) {
  Fleet fleet{.name = "demo"};
  (node.alive() ? fleet.nodes : fleet.ending) = {node};
  return spending_until(fleet, before, two_dollars, kNoon + 1h).dollars;
}

TEST(Budget, CountsAMachineFromItsLaunch) {
  EXPECT_DOUBLE_EQ(spent_by(machine("c5.large", "2026-01-31T12:00:00.000Z")), 2);
  EXPECT_DOUBLE_EQ(spent_by(machine("c5.large", "2026-01-31T12:30:00.000Z")), 1);
}

TEST(Budget, CountsNothingTwice) {
  const Spending before{.dollars = 5, .at = kNoon + 30min};
  EXPECT_DOUBLE_EQ(spent_by(machine("c5.large", "2026-01-31T12:00:00.000Z"), before), 6);
  EXPECT_DOUBLE_EQ(spent_by(machine("c5.large", "2026-01-31T12:00:00.000Z"), {.dollars = 5, .at = kNoon + 2h}), 5);
}

TEST(Budget, CountsAMachineThatEndedUntilItsEnd) {
  const Node node = machine("c5.large", "2026-01-31T12:00:00.000Z");
  EXPECT_DOUBLE_EQ(spent_by(ended(node, "2026-01-31 12:15:00 GMT")), 0.5);
  EXPECT_DOUBLE_EQ(spent_by(ended(node, ""), {.dollars = 1, .at = kNoon + 30min}), 1) << "an end that AWS does not say";
}

TEST(CostByDay, PartsARunAtMidnight) {
  Fleet fleet{.name = "demo"};
  fleet.nodes = {machine("c5.large", "2026-01-29T18:00:00.000Z"), machine("p9.large", "2026-01-31T11:00:00.000Z")};
  const DayCosts costs = cost_by_day(fleet, two_dollars, kNoon);
  ASSERT_EQ(costs.days.size(), 3U);
  EXPECT_EQ(costs.days[0].day, kNoon - 60h);
  EXPECT_DOUBLE_EQ(costs.days[0].hours, 6);
  EXPECT_DOUBLE_EQ(costs.days[1].cost.hourly, 48);
  EXPECT_DOUBLE_EQ(costs.days[2].hours, 13);
  EXPECT_EQ(cost_text(costs.days[2].cost), "$24.00 and the unknown price of p9.large");
  EXPECT_TRUE(costs.days[0].cost.unpriced.empty());
}

TEST(CostByDay, EndsWithTheMachineAndNamesOnesWithoutAnEnd) {
  Fleet fleet{.name = "demo"};
  const Node node = machine("c5.large", "2026-01-31T00:00:00.000Z");
  Node stopped = ended(node, "2026-01-31 03:00:00 GMT");
  stopped.state = "stopped";
  fleet.nodes = {stopped};
  fleet.ending = {ended(node, "2026-01-31 01:00:00 GMT"), ended(node, "")};
  const DayCosts costs = cost_by_day(fleet, two_dollars, kNoon);
  ASSERT_EQ(costs.days.size(), 1U);
  EXPECT_DOUBLE_EQ(costs.days.front().hours, 4);
  EXPECT_EQ(costs.unknown, (std::vector<std::string>{"i-1"}));
  EXPECT_TRUE(cost_by_day({}, two_dollars, kNoon).days.empty());
}

TEST(CostByDay, HasTheDayOfAMachineThatHasJustBegun) {
  Fleet fleet{.name = "demo"};
  for (const char* launch : {"2026-01-31T12:00:00.000Z", "2026-01-31T12:00:02.000Z"}) {
    fleet.nodes = {machine("c5.large", launch)};
    const DayCosts costs = cost_by_day(fleet, two_dollars, kNoon);
    ASSERT_EQ(costs.days.size(), 1U) << launch;
    EXPECT_DOUBLE_EQ(costs.days.front().hours, 0) << launch;
  }
}

TEST(Budget, NamesTypesWithoutAPriceOnce) {
  Fleet fleet{.name = "demo"};
  fleet.nodes = {machine("p9.large", "2026-01-31T12:00:00.000Z"), machine("p9.large", "2026-01-31T12:00:00.000Z"),
                 machine("c5.large", "2026-01-31T12:00:00.000Z")};
  const Spending spent = spending_until(fleet, {}, two_dollars, kNoon + 1h);
  EXPECT_EQ(spent.unpriced, (std::vector<std::string>{"p9.large"}));
  EXPECT_EQ(budget_text(50, spent), "at least $2.00 of the budget of $50.00 (the price of p9.large is unknown)");
  EXPECT_EQ(budget_text(50, {.unpriced = {"p9.large"}}),
            "an unknown part of the budget of $50.00 (the price of p9.large is unknown)");
}

TEST(Budget, CountsAMachineWhosePriceWasUnknownFromItsLaunchOnceItIsKnown) {
  const Spending before{.dollars = 1, .at = kNoon + 30min, .unpriced = {"c5.large", "p9.large", "m5.large"}};
  Fleet fleet{.name = "demo"};
  fleet.nodes = {machine("c5.large", "2026-01-31T12:00:00.000Z")};
  const Spending spent = spending_until(fleet, before, two_dollars, kNoon + 1h);
  EXPECT_DOUBLE_EQ(spent.dollars, 3);
  EXPECT_EQ(spent.unpriced, (std::vector<std::string>{"p9.large"})) << "also without a machine that is listed";
  EXPECT_DOUBLE_EQ(spending_until(fleet, spent, two_dollars, kNoon + 2h).dollars, 5);
}

Fleet tagged_with(const std::string& prices) {
  Fleet fleet{.name = "demo"};
  fleet.group = SecurityGroup{.id = "sg-1", .tags = {{tag::kPrices, prices}}};
  return fleet;
}

TEST(TaggedPrices, StandInThePlaceOfAMachinesOwn) {
  const PriceList own{.region = "us-east-1", .hourly = {{"c5.large", 0.085}, {"m5.large", 0.096}}};
  const PriceList prices =
      with_tagged_prices(tagged_with("c5.large=0.1 p9.large=7.25 m5.large=-1 much x= =2 a=b"), own);
  EXPECT_EQ(prices.of("c5.large"), 0.1);
  EXPECT_EQ(prices.of("p9.large"), 7.25);
  EXPECT_EQ(prices.of("m5.large"), 0.096) << "the tag says nonsense of it";
  EXPECT_EQ(with_tagged_prices({.name = "demo"}, own).hourly, own.hourly);
}

TEST(TaggedPrices, AreReplacedByThoseThatAwsPublishedAndNotByTheTable) {
  Fleet fleet = tagged_with("c5.large=0.1 p9.large=7.25");
  fleet.nodes = {machine("p9.large", ""), machine("x9.large", "")};
  PriceList own{.region = "us-east-1", .hourly = {{"c5.large", 0.085}}};
  EXPECT_EQ(prices_to_tag(fleet, {"c5.large"}, own), "c5.large=0.1 p9.large=7.25");
  own.published = "2026-11-20";
  EXPECT_EQ(prices_to_tag(fleet, {"c5.large"}, own), "c5.large=0.085 p9.large=7.25");
}

TEST(TaggedPrices, FitIntoATag) {
  PriceList own{.region = "us-east-1"};
  std::vector<std::string> types;
  for (int i = 0; i < 40; ++i) types.push_back("u7inh-32tb.480xlarge-" + std::to_string(i));
  for (const std::string& type : types) own.hourly[type] = 1234.5678;
  const std::string text = prices_text(types, own);
  EXPECT_LE(text.size(), 256u);
  EXPECT_TRUE(text.starts_with(types.front() + "=1234.57 "));
  EXPECT_TRUE(text.ends_with("=1234.57"));
}

TEST(Budget, TakesTheSpotPriceWhereOneIsKnown) {
  SpotPrices spot;
  spot.by_type["c5.large"]["us-east-1a"] = 0.03;
  const NodePrice price = node_price(built_in_prices(), spot);
  Node node = machine("c5.large", "");
  node.zone = "us-east-1a";
  EXPECT_EQ(price(node), built_in_prices().of("c5.large"));
  node.market = Market::spot;
  EXPECT_EQ(price(node), 0.03);
  node.type = "m5.large";
  EXPECT_EQ(price(node), built_in_prices().of("m5.large"));
}

TEST(Budget, WarnsAtFourFifthsAndIsSpentInFull) {
  EXPECT_EQ(budget_state(50, 39.99), BudgetState::ok);
  EXPECT_EQ(budget_state(50, 40), BudgetState::warn);
  EXPECT_EQ(budget_state(50, 50), BudgetState::spent);
}

TEST(Budget, SpendingComesBackFromItsTag) {
  const Spending spending{.dollars = 41.125, .at = kNoon, .warned = true, .unpriced = {"p9.large"}};
  Fleet fleet{.name = "demo"};
  fleet.group = SecurityGroup{.id = "sg-1", .tags = {{tag::kSpent, spending_text(spending)}}};
  EXPECT_EQ(tagged_spending(fleet), spending);
  fleet.group->tags.clear();
  EXPECT_EQ(tagged_spending(fleet), Spending{});
}

TEST(Budget, TheTagHasRoomForManyTypesWithoutAPrice) {
  Spending spending{.dollars = 123'456.789'012'345, .at = kNoon};
  for (int i = 0; i < 40; ++i) spending.unpriced.push_back("u7inh-32tb.480xlarge-" + std::to_string(i));
  EXPECT_LE(spending_text(spending).size(), 256u);
}

TEST(Budget, ATagByHandIsRefusedWithWhatToDo) {
  for (const char* text :
       {"much", "{}", R"({"schema":"dtrain.cluster-spent/9","dollars":1,"at":1,"warned":false,"unpriced":[]})",
        R"({"schema":"dtrain.cluster-spent/1","dollars":-1,"at":1,"warned":false,"unpriced":[]})"}) {
    Fleet fleet{.name = "demo"};
    fleet.group = SecurityGroup{.id = "sg-1", .tags = {{tag::kSpent, text}}};
    EXPECT_THROW((void)tagged_spending(fleet), DataError) << text;
  }
}

}  // namespace
}  // namespace dtrain::cluster
