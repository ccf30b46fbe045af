// Which rank sends which chunk of the state to which rank when ranks begin a generation: pure functions of what all
// ranks said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

// What a rank holds when it enters a generation. Without state, `cursor` and `updates` are those it could start with.
struct Claim {
  bool has_state = false;
  Cursor cursor;
  std::uint64_t updates = 0;
  std::string bits{};  // of the state, where ranks at one cursor may hold different ones; else empty
};

struct Roles {
  int leader = 0;              // the lowest rank that is furthest: all continue from its cursor
  std::vector<int> holders;    // ranks, ascending, whose weights are the leader's
  std::vector<int> receivers;  // all others
};
// A rank that has state is further than all that could only start; then the cursor counts. An epoch that is closed is
// further than one that is not, though the weights are the same.
Roles roles_of(const std::vector<Claim>& claims);

struct Delivery {
  std::size_t chunk = 0;
  int to = 0;
  friend bool operator==(const Delivery&, const Delivery&) = default;
};
struct Transfer {
  std::size_t chunk = 0;
  int from = 0, to = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// Every chunk once to every receiver.
std::vector<Delivery> all_deliveries(const Roles& roles, std::size_t chunks);

// The deliveries in their order, spread over the holders; attempt k takes the k-th holder after the first choice. When
// every rank works through its own transfers in this order, no rank waits for ever.
std::vector<Transfer> plan_transfers(const Roles& roles, const std::vector<Delivery>& deliveries, int attempt);

}  // namespace dtrain::train
