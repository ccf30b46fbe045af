// The price of a cluster, as far as the table of prices reaches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

inline constexpr double kHoursOfADay = 24;

struct Cost {
  double hourly = 0;                    // US dollars, of the instances whose price is known
  std::vector<std::string> unpriced{};  // types that are not in the table
};

// US dollars an hour on demand in us-east-1; nullopt: the type is not in the table.
std::optional<double> hourly_price(const std::string& type);
// A type with GPUs that dtrain trains on.
struct GpuOffer {
  std::string type;
  double hourly = 0;
  int gpus = 0;
};
// The cheapest one in the table with at least so many GPUs; where none has them, with the most.
GpuOffer cheapest_with_gpus(int gpus);
Cost cost_of(const std::vector<std::string>& types);
// "$1.25", "$1.25 and the unknown price of p9.large", "an unknown price (p9.large)".
std::string cost_text(const Cost& cost, double hours = 1);
Cost cost_of(const Fleet& fleet);
double hours_of(const Node& node);  // since its launch; 0: unknown
double cost_so_far(const Fleet& fleet);
double monthly_price(const FileSystem& system);  // for its present size, in us-east-1

}  // namespace dtrain::cluster
