#include <gtest/gtest.h>

#include <dtrain/cluster/spot.hpp>

namespace dtrain::cluster {
namespace {

net::Element price(const char* type, const char* zone, const char* dollars, const char* time) {
  return {.name = "item",
          .children = {{.name = "instanceType", .text = type},
                       {.name = "availabilityZone", .text = zone},
                       {.name = "spotPrice", .text = dollars},
                       {.name = "timestamp", .text = time}}};
}

TEST(Spot, TheLatestPriceOfAZoneCounts) {
  const SpotPrices prices = spot_prices_in({price("c5.large", "a", "0.04", "2026-01-01T00:00:00.000Z"),
                                            price("c5.large", "a", "0.03", "2026-01-02T00:00:00.000Z"),
                                            price("c5.large", "a", "0.05", "2026-01-01T12:00:00.000Z"),
                                            price("c5.large", "b", "0.06", "2026-01-01T00:00:00.000Z"),
                                            price("c5.large", "c", "0.01", "2026-01-01T00:00:00.000Z")});
  EXPECT_EQ(prices.of("c5.large", "a"), 0.03);
  EXPECT_EQ(prices.of("c5.large", ""), 0.03);
  EXPECT_EQ(prices.of("c5.large", "d"), 0.03);
  EXPECT_EQ(prices.of("p3.2xlarge", "a"), std::nullopt);
  EXPECT_EQ(prices.why_not, "");
  EXPECT_NE(spot_prices_in({}).why_not, "");
}

TEST(Spot, TheMedianOfTwoZonesLiesBetweenThem) {
  const SpotPrices prices{.by_type = {{"t", {{"a", 1.0}, {"b", 2.0}}}}};
  EXPECT_EQ(prices.of("t", ""), 1.5);
}

TEST(Spot, OnlySpotMachinesHaveThatPrice) {
  const SpotPrices prices{.by_type = {{"c5.large", {{"a", 0.02}}}}};
  Spec spec{.workers = 2, .instance_types = {"c5.large"}, .spot = SpotUse::prefer};
  EXPECT_NEAR(cost_of(machines_of(spec), prices, built_in_prices()).hourly, 0.085 + 2 * 0.02, 1e-9);
  spec.spot = SpotUse::only;
  EXPECT_NEAR(cost_of(machines_of(spec), prices, built_in_prices()).hourly, 3 * 0.02, 1e-9);
  spec.spot = SpotUse::off;
  EXPECT_NEAR(cost_of(machines_of(spec), prices, built_in_prices()).hourly, 3 * 0.085, 1e-9);
  spec.spot = SpotUse::only;
  EXPECT_NEAR(cost_of(machines_of(spec), {}, built_in_prices()).hourly, 3 * 0.085, 1e-9);
}

}  // namespace
}  // namespace dtrain::cluster
