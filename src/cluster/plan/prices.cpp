#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cost.hpp>

namespace dtrain::cluster {
namespace {

struct Price {
  std::string_view type;
  double dollars;
  int gpus = 0;  // of types that dtrain trains on
};

constexpr double kSecondsOfAnHour = 3600, kBytesOfAGigabyte = 1e9;
// US dollars for a GB a month in us-east-1: of EFS, of a gp3 disk, and of FSx for Lustre (persistent, 125 MB/s a TiB).
constexpr double kStoragePrice = 0.30, kDiskPrice = 0.08, kLustrePrice = 0.145;

// Linux, on demand, us-east-1, an hour.
constexpr Price kPrices[] = {
    {"t3.micro", 0.0104},        {"t3.small", 0.0208},       {"t3.medium", 0.0416},      {"t3.large", 0.0832},
    {"t3.xlarge", 0.1664},       {"t3.2xlarge", 0.3328},     {"m5.large", 0.096},        {"m5.xlarge", 0.192},
    {"m5.2xlarge", 0.384},       {"m5.4xlarge", 0.768},      {"m5.12xlarge", 2.304},     {"m5.24xlarge", 4.608},
    {"m6i.large", 0.096},        {"m6i.xlarge", 0.192},      {"m6i.2xlarge", 0.384},     {"m6i.4xlarge", 0.768},
    {"c5.large", 0.085},         {"c5.xlarge", 0.17},        {"c5.2xlarge", 0.34},       {"c5.4xlarge", 0.68},
    {"c5.9xlarge", 1.53},        {"c5.18xlarge", 3.06},      {"c5n.18xlarge", 3.888},    {"c6i.large", 0.085},
    {"c6i.xlarge", 0.17},        {"c6i.2xlarge", 0.34},      {"c6i.4xlarge", 0.68},      {"c6i.8xlarge", 1.36},
    {"c6i.16xlarge", 2.72},      {"c6i.32xlarge", 5.44},     {"c7i.large", 0.08925},     {"c7i.4xlarge", 0.714},
    {"c7i.24xlarge", 4.284},     {"g4dn.xlarge", 0.526},     {"g4dn.2xlarge", 0.752},    {"g4dn.4xlarge", 1.204},
    {"g4dn.12xlarge", 3.912},    {"g4dn.metal", 7.824},      {"p2.xlarge", 0.90},        {"p2.8xlarge", 7.20},
    {"p2.16xlarge", 14.40},      {"p3.2xlarge", 3.06},       {"p3.8xlarge", 12.24},      {"p3.16xlarge", 24.48},
    {"p3dn.24xlarge", 31.212},   {"g5.xlarge", 1.006, 1},    {"g5.2xlarge", 1.212, 1},   {"g5.4xlarge", 1.624, 1},
    {"g5.8xlarge", 2.448, 1},    {"g5.16xlarge", 4.096, 1},  {"g5.12xlarge", 5.672, 4},  {"g5.24xlarge", 8.144, 4},
    {"g5.48xlarge", 16.288, 8},  {"g6.xlarge", 0.8048, 1},   {"g6.2xlarge", 0.9776, 1},  {"g6.4xlarge", 1.3232, 1},
    {"g6.8xlarge", 2.0144, 1},   {"g6.16xlarge", 3.3968, 1}, {"g6.12xlarge", 4.6016, 4}, {"g6.24xlarge", 6.6752, 4},
    {"g6.48xlarge", 13.3504, 8},
};

std::optional<std::time_t> time_in_utc(const std::string& text, const char* format) {
  std::tm parts{};
  if (!strptime(text.c_str(), format, &parts)) return std::nullopt;
  return timegm(&parts);
}

}  // namespace

const PriceList& built_in_prices() {
  static const PriceList list = [] {
    PriceList made{.region = "us-east-1", .disk_gigabyte_month = kDiskPrice};
    for (const Price& price : kPrices) made.hourly.emplace(price.type, price.dollars);
    return made;
  }();
  return list;
}

GpuOffer cheapest_with_gpus(int gpus) {
  const auto less = [&](const Price& a, const Price& b) {
    const int first = std::min(a.gpus, gpus), second = std::min(b.gpus, gpus);
    return first != second ? first > second : a.dollars < b.dollars;
  };
  const Price& best = *std::min_element(std::begin(kPrices), std::end(kPrices), less);
  return {std::string(best.type), best.dollars, best.gpus};
}

Cost cost_of(const std::vector<std::string>& types, const PriceList& prices) {
  Cost cost;
  for (const std::string& type : types) {
    if (const auto price = prices.of(type)) {
      cost.hourly += *price;
    } else if (std::ranges::find(cost.unpriced, type) == cost.unpriced.end()) {
      cost.unpriced.push_back(type);
    }
  }
  return cost;
}

std::string cost_text(const Cost& cost, double hours) {
  const std::string types = join(cost.unpriced, ", ");
  if (cost.hourly == 0 && !types.empty()) return fmt::format("an unknown price ({})", types);
  const std::string known = fmt::format("${:.2f}", cost.hourly * hours);
  return types.empty() ? known : fmt::format("{} and the unknown price of {}", known, types);
}

Cost cost_of(const Fleet& fleet, const PriceList& prices) {
  std::vector<std::string> types;
  for (const Node& node : fleet.nodes) {
    if (node.alive()) types.push_back(node.type);
  }
  return cost_of(types, prices);
}

std::optional<std::time_t> launched_at(const Node& node) { return time_in_utc(node.launch_time, "%Y-%m-%dT%H:%M:%S"); }

std::optional<std::time_t> ended_at(const Node& node) { return time_in_utc(node.ended_at, "%Y-%m-%d %H:%M:%S"); }

double hours_of(const Node& node) {
  const auto launch = launched_at(node), end = node.alive() ? std::time(nullptr) : ended_at(node);
  if (!launch || !end) return 0;
  return std::max(std::difftime(*end, *launch) / kSecondsOfAnHour, 0.0);
}

double cost_so_far(const Fleet& fleet, const PriceList& prices) {
  double dollars = 0;
  for (const Node& node : fleet.nodes) dollars += hours_of(node) * prices.of(node.type).value_or(0);
  return dollars;
}

double monthly_price(const FileSystem& system) {
  return system.bytes / kBytesOfAGigabyte * (system.lustre ? kLustrePrice : kStoragePrice);
}

double monthly_price_of_lustre(int gigabytes) { return gigabytes * kLustrePrice; }

}  // namespace dtrain::cluster
