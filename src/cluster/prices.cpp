#include <algorithm>
#include <iterator>

#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {
namespace {

struct Price {
  std::string_view type;
  double dollars;
};

// Linux, on demand, us-east-1, an hour.
constexpr Price kPrices[] = {
    {"t3.micro", 0.0104},      {"t3.small", 0.0208},     {"t3.medium", 0.0416},   {"t3.large", 0.0832},
    {"t3.xlarge", 0.1664},     {"t3.2xlarge", 0.3328},   {"m5.large", 0.096},     {"m5.xlarge", 0.192},
    {"m5.2xlarge", 0.384},     {"m5.4xlarge", 0.768},    {"m5.12xlarge", 2.304},  {"m5.24xlarge", 4.608},
    {"m6i.large", 0.096},      {"m6i.xlarge", 0.192},    {"m6i.2xlarge", 0.384},  {"m6i.4xlarge", 0.768},
    {"c5.large", 0.085},       {"c5.xlarge", 0.17},      {"c5.2xlarge", 0.34},    {"c5.4xlarge", 0.68},
    {"c5.9xlarge", 1.53},      {"c5.18xlarge", 3.06},    {"c5n.18xlarge", 3.888}, {"c6i.large", 0.085},
    {"c6i.xlarge", 0.17},      {"c6i.2xlarge", 0.34},    {"c6i.4xlarge", 0.68},   {"c6i.8xlarge", 1.36},
    {"c6i.16xlarge", 2.72},    {"c6i.32xlarge", 5.44},   {"c7i.large", 0.08925},  {"c7i.4xlarge", 0.714},
    {"c7i.24xlarge", 4.284},   {"g4dn.xlarge", 0.526},   {"g4dn.2xlarge", 0.752}, {"g4dn.4xlarge", 1.204},
    {"g4dn.12xlarge", 3.912},  {"g4dn.metal", 7.824},    {"g5.xlarge", 1.006},    {"g5.2xlarge", 1.212},
    {"g5.4xlarge", 1.624},     {"g5.12xlarge", 5.672},   {"g5.48xlarge", 16.288}, {"g6.xlarge", 0.8048},
    {"g6.12xlarge", 4.6016},   {"g6.48xlarge", 13.3504}, {"p2.xlarge", 0.90},     {"p2.8xlarge", 7.20},
    {"p2.16xlarge", 14.40},    {"p3.2xlarge", 3.06},     {"p3.8xlarge", 12.24},   {"p3.16xlarge", 24.48},
    {"p3dn.24xlarge", 31.212},
};

struct Family {
  std::string_view begin, quota;
};
// In this order: "p" is also the beginning of no other family with GPUs.
constexpr Family kFamilies[] = {{"g", "gpu-g"}, {"vt", "gpu-g"}, {"p", "gpu-p"}, {"trn", ""}, {"inf", ""},
                                {"dl", ""},     {"hpc", ""},     {"u-", ""},     {"x", ""},   {"f", ""}};

}  // namespace

std::optional<double> hourly_price(const std::string& type) {
  const auto found =
      std::find_if(std::begin(kPrices), std::end(kPrices), [&](const Price& one) { return one.type == type; });
  if (found == std::end(kPrices)) return std::nullopt;
  return found->dollars;
}

std::string quota_of(const std::string& type) {
  for (const Family& family : kFamilies) {
    if (type.starts_with(family.begin)) return std::string(family.quota);
  }
  return "standard";
}

}  // namespace dtrain::cluster
