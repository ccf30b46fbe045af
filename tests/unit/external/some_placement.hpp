// Rank placements for tests: ranks on machines, with ports that identify their rank.
#pragma once

#include <fmt/format.h>

#include "rank_placement.hpp"

namespace dtrain::external {

// machines[i]: number of ranks on machine i, whose address is 10.0.0.(i+1).
inline RankPlacement some_placement(const std::vector<int>& machines, int servers = 0) {
  std::vector<RankInfo> infos;
  int ranks = 0;
  for (const int count : machines) ranks += count;
  for (std::size_t machine = 0; machine < machines.size(); ++machine) {
    for (int slot = 0; slot < machines[machine]; ++slot) {
      RankInfo info{.host = fmt::format("host{}", machine),
                    .slot = slot,
                    .address = fmt::format("10.0.0.{}", machine + 1),
                    .network_card = "eth0",
                    .processors = 8,
                    .ports = {}};
      for (std::size_t port = 0; port < ports_of_a_rank(ranks, servers); ++port) {
        info.ports.push_back(static_cast<std::uint16_t>(1000 * (infos.size() + 1) + port));
      }
      infos.push_back(info);
    }
  }
  infos.front().rendezvous = 999;
  infos.front().rendezvous_secret = "secret";
  infos.front().mxnet_waiting = 997;
  infos.front().waiting = 998;
  return place_ranks(7, std::move(infos), servers);
}

}  // namespace dtrain::external
