#include "transfer_plan.hpp"

#include <algorithm>
#include <tuple>

namespace dtrain::train {
namespace {

auto progress_of(const Claim& claim) {
  return std::tuple(claim.has_state, claim.cursor.epoch, claim.cursor.step, claim.cursor.samples_seen);
}

auto weights_of(const Claim& claim) {
  return std::tuple(claim.has_state, claim.updates, claim.cursor.samples_seen, claim.bits);
}

}  // namespace

Roles roles_of(const std::vector<Claim>& claims) {
  const auto furthest = std::ranges::max_element(claims, {}, progress_of);  // the first of equals
  Roles roles;
  roles.leader = static_cast<int>(furthest - claims.begin());
  for (int rank = 0; rank < std::ssize(claims); ++rank) {
    const bool holds = weights_of(claims[static_cast<std::size_t>(rank)]) == weights_of(*furthest);
    (holds ? roles.holders : roles.receivers).push_back(rank);
  }
  return roles;
}

std::vector<Delivery> all_deliveries(const Roles& roles, std::size_t chunks) {
  std::vector<Delivery> deliveries;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (const int receiver : roles.receivers) deliveries.push_back({chunk, receiver});
  }
  return deliveries;
}

std::vector<Transfer> plan_transfers(const Roles& roles, const std::vector<Delivery>& deliveries, int attempt) {
  std::vector<Transfer> transfers;
  for (const Delivery& delivery : deliveries) {
    const auto receiver = std::ranges::find(roles.receivers, delivery.to) - roles.receivers.begin();
    const std::size_t turn = delivery.chunk + static_cast<std::size_t>(receiver) + static_cast<std::size_t>(attempt);
    transfers.push_back({delivery.chunk, roles.holders[turn % roles.holders.size()], delivery.to});
  }
  return transfers;
}

}  // namespace dtrain::train
