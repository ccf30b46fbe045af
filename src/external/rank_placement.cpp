#include "rank_placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/net/addresses.hpp>

namespace dtrain::external {

Json to_json(const RankInfo& info) {
  Json ports = Json::array();
  for (const std::uint16_t port : info.ports) ports.push_back(int{port});
  return Json::object({{"host", info.host},
                       {"slot", info.slot},
                       {"address", info.address},
                       {"network_card", info.network_card},
                       {"processors", info.processors},
                       {"ports", std::move(ports)},
                       {"rendezvous", int{info.rendezvous}},
                       {"waiting", int{info.waiting}},
                       {"mxnet_waiting", int{info.mxnet_waiting}},
                       {"rendezvous_secret", info.rendezvous_secret},
                       {"starts", info.starts},
                       {"failures", info.failures},
                       {"steps", info.steps},
                       {"furthest", info.progress.furthest},
                       {"fruitless", info.progress.fruitless}});
}

RankInfo rank_info_from_json(const Json& json) {
  RankInfo info;
  info.host = json.at("host").as_string();
  info.slot = static_cast<int>(json.at("slot").as_integer());
  info.address = json.at("address").as_string();
  info.network_card = json.at("network_card").as_string();
  info.processors = static_cast<int>(json.at("processors").as_integer());
  for (const Json& port : json.at("ports").as_array()) {
    info.ports.push_back(static_cast<std::uint16_t>(port.as_integer()));
  }
  if (info.ports.size() < first_server_port) throw DataError("a rank leased too few ports");
  info.rendezvous = static_cast<std::uint16_t>(json.at("rendezvous").as_integer());
  info.waiting = static_cast<std::uint16_t>(json.at("waiting").as_integer());
  info.mxnet_waiting = static_cast<std::uint16_t>(json.at("mxnet_waiting").as_integer());
  info.rendezvous_secret = json.at("rendezvous_secret").as_string();
  info.starts = json.at("starts").as_integer();
  info.failures = json.at("failures").as_integer();
  info.steps = json.at("steps").as_integer();
  info.progress = {json.at("furthest").as_integer(), json.at("fruitless").as_integer()};
  return info;
}

std::vector<int> RankPlacement::servers_of(int rank) const {
  std::vector<int> mine;
  for (int server = rank; server < servers; server += size()) mine.push_back(server);
  return mine;
}

std::string RankPlacement::address_of_server(int server) const {
  const RankInfo& info = ranks[static_cast<std::size_t>(server % size())];
  return fmt::format("{}:{}", net::in_brackets(info.address),
                     info.ports.at(first_server_port + static_cast<std::size_t>(server / size())));
}

std::vector<int> RankPlacement::neighbours(int rank) const {
  std::vector<int> found;
  for (int other = 0; other < size(); ++other) {
    if (ranks[static_cast<std::size_t>(other)].address == ranks[static_cast<std::size_t>(rank)].address) {
      found.push_back(other);
    }
  }
  return found;
}

int RankPlacement::local_rank(int rank) const {
  const std::vector<int> local = neighbours(rank);
  return static_cast<int>(std::ranges::find(local, rank) - local.begin());
}

std::vector<int> RankPlacement::machines() const {
  std::vector<int> firsts;
  for (int rank = 0; rank < size(); ++rank) {
    if (neighbours(rank).front() == rank) firsts.push_back(rank);
  }
  return firsts;
}

std::string RankPlacement::host_lines() const {
  std::string lines;
  std::set<std::string> named;
  for (const RankInfo& info : ranks) {
    if (named.insert(info.host).second) lines += info.host + '\n';
  }
  return lines;
}

int RankPlacement::machine_of(int rank) const {
  const std::vector<int> firsts = machines();
  return static_cast<int>(std::ranges::find(firsts, neighbours(rank).front()) - firsts.begin());
}

std::size_t ports_of_a_rank(int ranks, int servers) {
  return first_server_port + static_cast<std::size_t>((servers + ranks - 1) / ranks);
}

RankPlacement place_ranks(std::uint64_t generation, std::vector<RankInfo> ranks, int servers) {
  RankPlacement placement{.generation = generation, .ranks = std::move(ranks), .servers = servers};
  for (const RankInfo& info : placement.ranks) {
    placement.starts = std::max(placement.starts, info.starts);
    placement.failures = std::max(placement.failures, info.failures);
    placement.steps = std::max(placement.steps, info.steps);
    placement.progress = std::max(placement.progress, info.progress);
  }
  return placement;
}

}  // namespace dtrain::external
