// What a cluster's machines have cost since it was made, as far as prices are known, and whether its budget is spent.
// Pure. Disks, traffic and shared folders are not counted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/cost.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/prices.hpp>
#include <dtrain/cluster/spot.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

namespace tag {
inline constexpr const char* kSpent = "dtrain:spent";  // on the security group: spending_text()
}  // namespace tag

inline constexpr double kWarnAtShare = 0.8;  // a warning is given when so much of the budget is spent

// What was counted, and until when. AWS forgets a machine an hour after its end, so it is written down.
struct Spending {
  double dollars = 0;
  UnixTime at{0};                       // what ran later is not in `dollars`
  bool warned = false;                  // that kWarnAtShare of the budget is spent
  std::vector<std::string> unpriced{};  // types that ran and whose price was unknown; `dollars` lacks them
  friend bool operator==(const Spending&, const Spending&) = default;
};
std::string spending_text(const Spending& spending);
// The tagged spending; without a tag, that of a new cluster. Throws DataError for a tag that dtrain does not write.
Spending tagged_spending(const Fleet& fleet);

// US dollars an hour; nullopt: unknown.
using NodePrice = std::function<std::optional<double>(const Node&)>;
// Spot machines at the present spot price, others, and spot machines without one, at the price on demand.
NodePrice node_price(const PriceList& on_demand, SpotPrices spot);

// The spending until now: adds what each machine of the fleet, also one that ended, has run since `before.at`. A
// machine that ended at a time that AWS does not say is counted until `before.at`. A type whose price was unknown and
// is known now leaves `unpriced`; its machines are counted from their launches.
Spending spending_until(const Fleet& fleet, const Spending& before, const NodePrice& price, UnixTime now);

// What the machines that AWS still lists cost on one day of UTC, each since its last start.
struct DayCost {
  UnixTime day{0};   // its first second
  double hours = 0;  // of machines
  Cost cost{};       // `hourly` is the sum of the day, in US dollars
};
struct DayCosts {
  std::vector<DayCost> days{};         // the oldest first, without days on which none ran
  std::vector<std::string> unknown{};  // instances that ended or stopped at a time that AWS does not say: not counted
};
DayCosts cost_by_day(const Fleet& fleet, const NodePrice& price, UnixTime now);

enum class BudgetState { ok, warn, spent };
BudgetState budget_state(double budget, double dollars);
// "$41.10 of the budget of $50.00", "at least $41.10 of the budget of $50.00 (the price of p9.large is unknown)".
std::string budget_text(double budget, const Spending& spending);

}  // namespace dtrain::cluster
