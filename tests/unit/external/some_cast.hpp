// Casts for tests: ranks on machines, with ports that say whose they are.
#pragma once

#include <fmt/format.h>

#include "cast.hpp"

namespace dtrain::external {

// machines[i]: how many ranks are on machine i, whose address is 10.0.0.(i+1).
inline Cast some_cast(const std::vector<int>& machines, int servers = 0) {
  std::vector<Seat> seats;
  int ranks = 0;
  for (const int count : machines) ranks += count;
  for (std::size_t machine = 0; machine < machines.size(); ++machine) {
    for (int slot = 0; slot < machines[machine]; ++slot) {
      Seat seat{.host = fmt::format("host{}", machine),
                .slot = slot,
                .address = fmt::format("10.0.0.{}", machine + 1),
                .network_card = "eth0",
                .processors = 8,
                .ports = {}};
      for (std::size_t port = 0; port < ports_of_a_rank(ranks, servers); ++port) {
        seat.ports.push_back(static_cast<std::uint16_t>(1000 * (seats.size() + 1) + port));
      }
      seats.push_back(seat);
    }
  }
  seats.front().rendezvous = 999;
  seats.front().waiting = 998;
  return make_cast(7, std::move(seats), servers);
}

}  // namespace dtrain::external
