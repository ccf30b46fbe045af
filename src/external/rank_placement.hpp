// The ranks of one generation and what each needs to know of the others before the programs start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::external {

// Indexes of the ports that a rank leased for this generation on its own address. The ports of its parameter servers
// follow.
enum Port : std::size_t { torch_port, mxnet_port, jax_port, tensorflow_port, first_server_port };

// Failures in a row without progress.
struct RestartProgress {
  std::int64_t furthest = 0;  // the program's own number, see progress_file()
  std::int64_t fruitless = 0;
  friend auto operator<=>(const RestartProgress&, const RestartProgress&) = default;
};

struct RankInfo {
  std::string host;  // its line in the host file
  int slot = 0;
  std::string address;
  std::string network_card;  // the interface with this address; empty: unknown
  int processors = 1;        // of its machine
  std::vector<std::uint16_t> ports;
  // Only for rank 0: its key-value server (0: none), and the waiting ports before its torch_port and mxnet_port.
  std::uint16_t rendezvous = 0, waiting = 0, mxnet_waiting = 0;
  std::string rendezvous_secret{};

  // The run so far, as this rank knows it; the highest value of all ranks counts.
  std::int64_t starts = 0;    // of the program
  std::int64_t failures = 0;  // generations that ended with a failure
  std::int64_t steps = 0;     // see RankPlacement::steps
  RestartProgress progress{};
};
Json to_json(const RankInfo& info);
RankInfo rank_info_from_json(const Json& json);

struct RankPlacement {
  std::uint64_t generation = 0;
  std::vector<RankInfo> ranks;  // by rank
  int servers = 0;
  std::int64_t starts = 0, failures = 0;
  std::int64_t steps = 0;  // rounds that the ranks completed together, in all generations
  RestartProgress progress{};

  int size() const { return static_cast<int>(ranks.size()); }
  // Servers are assigned to the ranks in turn.
  std::vector<int> servers_of(int rank) const;
  std::string address_of_server(int server) const;  // host:port
  // Ranks on the same machine as this one, including it, in order.
  std::vector<int> neighbours(int rank) const;
  int local_rank(int rank) const;
  std::string host_lines() const;  // each host once, in the order of the ranks
  // Machines, each given by its first rank; and the index of the machine of this rank.
  std::vector<int> machines() const;
  int machine_of(int rank) const;
};

// Number of ports that a rank leases where `ranks` share `servers`.
std::size_t ports_of_a_rank(int ranks, int servers);

RankPlacement place_ranks(std::uint64_t generation, std::vector<RankInfo> ranks, int servers);

}  // namespace dtrain::external
