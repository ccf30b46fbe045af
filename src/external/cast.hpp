// Who plays which part in one generation: what every rank tells every other before their programs start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::external {

// Ports that a rank leased for this generation, on its own address. Those of its parameter servers follow.
enum Port : std::size_t { torch_port, mxnet_port, jax_port, tensorflow_port, first_server_port };

// How often in a row the program failed at the same place.
struct Progress {
  std::int64_t furthest = 0;  // what the program said of itself, see kProgressFile
  std::int64_t fruitless = 0;
  friend auto operator<=>(const Progress&, const Progress&) = default;
};

struct Seat {
  std::string host;  // its line in the host file
  int slot = 0;
  std::string address;
  std::string network_card;  // that has this address; empty: unknown
  int processors = 1;        // of its machine
  std::vector<std::uint16_t> ports;
  // Of rank 0: its key-value server, and the waiting port before its torch_port.
  std::uint16_t rendezvous = 0, waiting = 0;

  // What it knows of the run so far: where ranks know different things, the most holds.
  std::int64_t starts = 0;    // of the program
  std::int64_t failures = 0;  // generations that ended because something failed
  std::int64_t steps = 0;     // see Cast::steps
  Progress progress{};
};
Json to_json(const Seat& seat);
Seat seat_from_json(const Json& json);

struct Cast {
  std::uint64_t generation = 0;
  std::vector<Seat> seats;  // by rank
  int servers = 0;
  std::int64_t starts = 0, failures = 0;
  std::int64_t steps = 0;  // rounds that the ranks went through together, in all generations
  Progress progress{};

  int size() const { return static_cast<int>(seats.size()); }
  // Servers are dealt to the ranks in turn.
  std::vector<int> servers_of(int rank) const;
  std::string address_of_server(int server) const;  // host:port
  // Ranks on the same machine as this one, itself included, in order.
  std::vector<int> neighbours(int rank) const;
  // Machines, by the first rank on each; and which of them holds this rank.
  std::vector<int> machines() const;
  int machine_of(int rank) const;
};

// How many ports a rank leases where `ranks` share `servers`.
std::size_t ports_of_a_rank(int ranks, int servers);

Cast make_cast(std::uint64_t generation, std::vector<Seat> seats, int servers);

}  // namespace dtrain::external
