#include <dtrain/cluster/budget.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cost.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::string_view kSpentSchema = "dtrain.cluster-spent/1";
constexpr double kSecondsOfAnHour = 3600;
constexpr std::chrono::seconds kDay = std::chrono::hours(24);
constexpr std::size_t kMostUnpriced = 4;  // a tag has room for 256 characters

// When the machine ended or stopped, or now if it runs.
UnixTime end_of(const Node& node, UnixTime counted_until, UnixTime now) {
  if (node.alive()) return now;
  const auto end = ended_at(node);
  return end ? UnixTime(*end) : counted_until;
}

double dollars_in(const Json& document) {
  const double dollars = document.at("dollars").as_number();
  if (!(dollars >= 0)) throw DataError("'dollars' is below 0");
  return dollars;
}

}  // namespace

std::string spending_text(const Spending& spending) {
  Json unpriced = Json::array();
  for (const std::string& type : spending.unpriced) {
    if (unpriced.as_array().size() < kMostUnpriced) unpriced.push_back(type);
  }
  return Json::object({{"schema", kSpentSchema},
                       {"dollars", spending.dollars},
                       {"at", spending.at.count()},
                       {"warned", spending.warned},
                       {"unpriced", unpriced}})
      .dump();
}

Spending tagged_spending(const Fleet& fleet) {
  if (!fleet.group) return {};
  const auto found = fleet.group->tags.find(tag::kSpent);
  if (found == fleet.group->tags.end()) return {};
  try {
    const Json document = Json::parse(found->second, "spending");
    if (document.at("schema").as_string() != kSpentSchema) throw DataError("it has another schema");
    Spending spending{.dollars = dollars_in(document),
                      .at = UnixTime(document.at("at").as_integer()),
                      .warned = document.at("warned").as_bool()};
    for (const Json& type : document.at("unpriced").as_array()) spending.unpriced.push_back(type.as_string());
    return spending;
  } catch (const DataError& problem) {
    throw DataError(
        fmt::format("tag {} of the security group is not what dtrain writes: {}", tag::kSpent, problem.what()),
        "delete this tag; the machines that AWS still lists are then counted from their launches");
  }
}

NodePrice node_price(const PriceList& on_demand, SpotPrices spot) {
  return [on_demand, spot = std::move(spot)](const Node& node) {
    const auto price = node.market == Market::spot ? spot.of(node.type, node.zone) : std::nullopt;
    return price ? price : on_demand.of(node.type);
  };
}

Spending spending_until(const Fleet& fleet, const Spending& before, const NodePrice& price, UnixTime now) {
  Spending spent = before;
  spent.at = std::max(before.at, now);
  std::erase_if(spent.unpriced, [&](const std::string& type) { return price({.type = type}).has_value(); });
  const auto count = [&](const Node& node) {
    const auto launch = launched_at(node);
    if (!launch) return;
    const auto hourly = price(node);
    const bool is_counted = !hourly || std::ranges::find(before.unpriced, node.type) == before.unpriced.end();
    const UnixTime from = is_counted ? std::max(UnixTime(*launch), before.at) : UnixTime(*launch);
    const UnixTime ran = end_of(node, before.at, now) - from;
    if (ran.count() <= 0) return;
    if (hourly) {
      spent.dollars += *hourly * static_cast<double>(ran.count()) / kSecondsOfAnHour;
    } else if (std::ranges::find(spent.unpriced, node.type) == spent.unpriced.end()) {
      spent.unpriced.push_back(node.type);
    }
  };
  for (const Node& node : fleet.nodes) count(node);
  for (const Node& node : fleet.ending) count(node);
  return spent;
}

DayCosts cost_by_day(const Fleet& fleet, const NodePrice& price, UnixTime now) {
  DayCosts costs;
  std::map<UnixTime, DayCost> days;
  const auto count = [&](const Node& node) {
    const auto launch = launched_at(node), end = node.alive() ? std::optional(now.count()) : ended_at(node);
    if (!launch || !end) return costs.unknown.push_back(node.instance_id);
    const auto hourly = price(node);
    // A machine has a day from the second of its launch on, when it has run for no time yet.
    const UnixTime ended(std::max(*launch, *end));
    UnixTime from(*launch);
    do {
      const UnixTime day = from - from % kDay, until = std::min(day + kDay, ended);
      DayCost& one = days[day];
      one.day = day;
      const double hours = static_cast<double>((until - from).count()) / kSecondsOfAnHour;
      one.hours += hours;
      if (hourly) {
        one.cost.hourly += hours * *hourly;
      } else if (std::ranges::find(one.cost.unpriced, node.type) == one.cost.unpriced.end()) {
        one.cost.unpriced.push_back(node.type);
      }
      from = until;
    } while (from < ended);
  };
  for (const Node& node : fleet.nodes) count(node);
  for (const Node& node : fleet.ending) count(node);
  for (const auto& [day, one] : days) costs.days.push_back(one);
  return costs;
}

BudgetState budget_state(double budget, double dollars) {
  if (dollars >= budget) return BudgetState::spent;
  return dollars >= kWarnAtShare * budget ? BudgetState::warn : BudgetState::ok;
}

std::string budget_text(double budget, const Spending& spending) {
  std::string of = fmt::format("${:.2f} of the budget of ${:.2f}", spending.dollars, budget);
  if (spending.unpriced.empty()) return of;
  const std::string types = join(spending.unpriced, ", ");
  if (spending.dollars == 0)
    return fmt::format("an unknown part of the budget of ${:.2f} (the price of {} is unknown)", budget, types);
  return fmt::format("at least {} (the price of {} is unknown)", of, types);
}

}  // namespace dtrain::cluster
