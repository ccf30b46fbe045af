// Which types of machines a region has, what dtrain can do with each, and what it costs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/prices.hpp>
#include <dtrain/cluster/spot.hpp>

namespace dtrain::cluster {

struct TypeWish {
  int gpus = 1;                       // at least so many
  double gpu_memory_gib = 0;          // each with at least so much
  std::optional<double> max_price{};  // US dollars an hour, on demand or on spot
};

struct TypeOffer {
  MachineType type{};
  std::string capability{};                   // of its GPU: "8.6"; empty: it has none, or dtrain does not know it
  std::string why_not{};                      // why dtrain cannot train on it; empty: it can
  std::string quota{};                        // of quota_of(); empty: no known one
  std::optional<double> on_demand{}, spot{};  // US dollars an hour; nullopt: unknown
  std::optional<double> vcpus_left{};         // of its quota; nullopt: unknown

  std::optional<double> cheapest() const;  // nullopt: neither price is known
  // How many of these the quota still allows; nullopt: unknown.
  std::optional<int> machines_left() const;
};

// Pure: why dtrain cannot train on machines of this type; empty: it can.
std::string why_not_trained_on(const MachineType& type);

// Pure: the types that fit the wish; those that dtrain can train on first, each part by price, unknown prices last. A
// type without a known price is left out where the wish has a limit.
std::vector<TypeOffer> fitting_offers(std::vector<TypeOffer> offers, const TypeWish& wish);

// The types that are offered in some zone and fit the wish, in the order of fitting_offers(). Changes nothing. What the
// account may not read (quotas, spot prices) stays unknown; `spot_why_not` then has the reason. Throws whatever
// AwsCalls throws.
struct TypeOffers {
  std::vector<TypeOffer> offers{};
  std::string spot_why_not{};
};
TypeOffers read_type_offers(net::AwsCalls& aws, const TypeWish& wish, const PriceList& prices);

}  // namespace dtrain::cluster
