// The price of a cluster, as far as the table of prices reaches.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/prices.hpp>

namespace dtrain::cluster {

inline constexpr double kHoursOfADay = 24;

struct Cost {
  double hourly = 0;                    // US dollars, of the instances whose price is known
  std::vector<std::string> unpriced{};  // types whose price is unknown
};

// A type with GPUs that dtrain trains on.
struct GpuOffer {
  std::string type;
  double hourly = 0;
  int gpus = 0;
};
// The cheapest one in the table with at least so many GPUs; where none has them, with the most.
GpuOffer cheapest_with_gpus(int gpus);
Cost cost_of(const std::vector<std::string>& types, const PriceList& prices);
// "$1.25", "$1.25 and the unknown price of p9.large", "an unknown price (p9.large)".
std::string cost_text(const Cost& cost, double hours = 1);
Cost cost_of(const Fleet& fleet, const PriceList& prices);  // of the machines that run
// Its last launch or start; its end or last stop. nullopt: unknown.
std::optional<std::time_t> launched_at(const Node& node);
std::optional<std::time_t> ended_at(const Node& node);
double hours_of(const Node& node);                                // from one to the other, or until now; 0: unknown
double cost_so_far(const Fleet& fleet, const PriceList& prices);  // of the nodes whose price is known
double monthly_price(const FileSystem& system);                   // for its present size, in us-east-1
double monthly_price_of_lustre(int gigabytes);                    // the same of FSx for Lustre

}  // namespace dtrain::cluster
