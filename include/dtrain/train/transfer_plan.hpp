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

// Bytes that ranks send each other at once: small beside a state, which many ranks pass on to each other.
inline constexpr std::size_t kTransferChunk = 1 << 20;

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

// Every chunk once to every receiver, in the order in which each rank works through its own transfers: then none waits
// for ever. With at least as many holders as receivers, each receiver gets its chunks from all holders in turn. Else
// the receivers are divided among the holders, and pass on what they have: in a chain, each to the next one, so that
// all links are busy and many receivers take about twice as long as one; where a chain would be long beside the number
// of chunks, in a binary tree.
std::vector<Transfer> plan_transfers(const Roles& roles, std::size_t chunks);

// These deliveries again, in their order, from the holders alone: the k-th time from the k-th holder after another one.
std::vector<Transfer> plan_repeats(const Roles& roles, const std::vector<Delivery>& deliveries, int attempt);

}  // namespace dtrain::train
