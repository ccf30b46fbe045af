#include "cast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::external {

Json to_json(const Seat& seat) {
  Json ports = Json::array();
  for (const std::uint16_t port : seat.ports) ports.push_back(int{port});
  return Json::object({{"host", seat.host},
                       {"slot", seat.slot},
                       {"address", seat.address},
                       {"network_card", seat.network_card},
                       {"processors", seat.processors},
                       {"ports", std::move(ports)},
                       {"rendezvous", int{seat.rendezvous}},
                       {"waiting", int{seat.waiting}},
                       {"starts", seat.starts},
                       {"failures", seat.failures},
                       {"steps", seat.steps},
                       {"furthest", seat.progress.furthest},
                       {"fruitless", seat.progress.fruitless}});
}

Seat seat_from_json(const Json& json) {
  Seat seat;
  seat.host = json.at("host").as_string();
  seat.slot = static_cast<int>(json.at("slot").as_integer());
  seat.address = json.at("address").as_string();
  seat.network_card = json.at("network_card").as_string();
  seat.processors = static_cast<int>(json.at("processors").as_integer());
  for (const Json& port : json.at("ports").as_array()) {
    seat.ports.push_back(static_cast<std::uint16_t>(port.as_integer()));
  }
  if (seat.ports.size() < first_server_port) throw DataError("a rank leased too few ports");
  seat.rendezvous = static_cast<std::uint16_t>(json.at("rendezvous").as_integer());
  seat.waiting = static_cast<std::uint16_t>(json.at("waiting").as_integer());
  seat.starts = json.at("starts").as_integer();
  seat.failures = json.at("failures").as_integer();
  seat.steps = json.at("steps").as_integer();
  seat.progress = {json.at("furthest").as_integer(), json.at("fruitless").as_integer()};
  return seat;
}

std::vector<int> Cast::servers_of(int rank) const {
  std::vector<int> mine;
  for (int server = rank; server < servers; server += size()) mine.push_back(server);
  return mine;
}

std::string Cast::address_of_server(int server) const {
  const Seat& seat = seats[static_cast<std::size_t>(server % size())];
  return fmt::format("{}:{}", seat.address,
                     seat.ports.at(first_server_port + static_cast<std::size_t>(server / size())));
}

std::vector<int> Cast::neighbours(int rank) const {
  std::vector<int> ranks;
  for (int other = 0; other < size(); ++other) {
    if (seats[static_cast<std::size_t>(other)].address == seats[static_cast<std::size_t>(rank)].address) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

std::vector<int> Cast::machines() const {
  std::vector<int> firsts;
  for (int rank = 0; rank < size(); ++rank) {
    if (neighbours(rank).front() == rank) firsts.push_back(rank);
  }
  return firsts;
}

int Cast::machine_of(int rank) const {
  const std::vector<int> firsts = machines();
  return static_cast<int>(std::ranges::find(firsts, neighbours(rank).front()) - firsts.begin());
}

std::size_t ports_of_a_rank(int ranks, int servers) {
  return first_server_port + static_cast<std::size_t>((servers + ranks - 1) / ranks);
}

Cast make_cast(std::uint64_t generation, std::vector<Seat> seats, int servers) {
  Cast cast{.generation = generation, .seats = std::move(seats), .servers = servers};
  for (const Seat& seat : cast.seats) {
    cast.starts = std::max(cast.starts, seat.starts);
    cast.failures = std::max(cast.failures, seat.failures);
    cast.steps = std::max(cast.steps, seat.steps);
    cast.progress = std::max(cast.progress, seat.progress);
  }
  return cast;
}

}  // namespace dtrain::external
