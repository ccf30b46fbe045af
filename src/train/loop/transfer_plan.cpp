#include <dtrain/train/transfer_plan.hpp>

#include <algorithm>
#include <bit>
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

namespace {

constexpr std::size_t kLongestChain = 128;  // the last receiver waits for as many chunks before it has one

// In units of a chunk's time: a receiver in a chain receives and sends each chunk, one in a tree sends it twice.
bool is_chain_faster(std::size_t receivers, std::size_t chunks) {
  return receivers <= kLongestChain && 2 * chunks + receivers <= 3 * chunks + 2 * std::bit_width(receivers);
}

// One chunk, from `holder` over those of its receivers: every so many of roles.receivers, from the first on.
void pass_on(const Roles& roles, std::size_t chunk, int holder, std::size_t first, bool in_chain,
             std::vector<Transfer>& transfers) {
  const std::size_t stride = roles.holders.size();
  for (std::size_t place = 0; first + place * stride < roles.receivers.size(); ++place) {
    const std::size_t before = in_chain ? place - 1 : (place - 1) / 2;  // not of the first
    const int from = place == 0 ? holder : roles.receivers[first + before * stride];
    transfers.push_back({chunk, from, roles.receivers[first + place * stride]});
  }
}

}  // namespace

std::vector<Transfer> plan_transfers(const Roles& roles, std::size_t chunks) {
  const std::size_t holders = roles.holders.size(), receivers = roles.receivers.size();
  const std::size_t longest = (receivers + holders - 1) / holders;
  const bool in_chain = is_chain_faster(longest, chunks);
  std::vector<Transfer> transfers;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t first = 0; first < std::min(holders, receivers); ++first) {
      pass_on(roles, chunk, roles.holders[(chunk + first) % holders], first, in_chain, transfers);
    }
  }
  return transfers;
}

std::vector<Transfer> plan_repeats(const Roles& roles, const std::vector<Delivery>& deliveries, int attempt) {
  std::vector<Transfer> transfers;
  for (const Delivery& delivery : deliveries) {
    const auto receiver = std::ranges::find(roles.receivers, delivery.to) - roles.receivers.begin();
    const std::size_t turn = delivery.chunk + static_cast<std::size_t>(receiver) + static_cast<std::size_t>(attempt);
    transfers.push_back({delivery.chunk, roles.holders[turn % roles.holders.size()], delivery.to});
  }
  return transfers;
}

}  // namespace dtrain::train
