// One rank of an exchange of gradients between addresses, to be started once for each rank, in its own network
// namespace: tests/bench/exchange.py. Ranks find each other's ports in a folder. Rank 0 prints the seconds of every
// round, each of the slowest rank, after the name of the algorithm.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <dtrain/comm/all_reduce_baseline.hpp>

#include "meeting.hpp"

namespace dtrain::comm {
namespace {

using Clock = std::chrono::steady_clock;

double slowest(Communicator& comm, double seconds) {
  for (const std::string& bytes : comm.all_gather(std::as_bytes(std::span(&seconds, 1)))) {
    double theirs = 0;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    seconds = std::max(seconds, theirs);
  }
  return seconds;
}

// What all ranks do together, `rounds` times after a first one that warms connections and memory up.
void measure(Communicator& comm, const std::string& name, int rounds, const std::function<void()>& work) {
  for (int round = -1; round < rounds; ++round) {
    comm.all_gather({});
    const Clock::time_point begin = Clock::now();
    work();
    const double seconds = slowest(comm, std::chrono::duration<double>(Clock::now() - begin).count());
    if (comm.rank() == 0 && round >= 0) fmt::print("{} {:.6f}\n", name, seconds);
  }
}

void measure_tree(Communicator& comm, const ReductionShape& shape, int rounds) {
  const ShardSpan span = shards_of_rank(comm.rank(), comm.size(), shape.shards);
  measure(comm, "tree", rounds, [&] {
    const auto reduction = comm.begin_reduction(shape, {});
    for (int shard = span.first; shard < span.last; ++shard) {
      std::ranges::fill(reduction->leaf(shard), 1.0f);
      reduction->ready(shard, 0, shape.size);
    }
    FloatBuffer sum = reduction->finish().sum;
    const bool right = std::ranges::all_of(sum, [&](float value) { return value == static_cast<float>(shape.shards); });
    if (!right) throw std::runtime_error("a wrong sum");
    comm.recycle(std::move(sum));
  });
}

void measure_gloo(Communicator& comm, const std::string& address, std::int64_t floats, int rounds) {
  std::vector<float> values(static_cast<std::size_t>(floats));
  const auto gloo = make_gloo_baseline(comm, address, values);
  for (const std::string& algorithm : gloo_algorithms()) {
    measure(comm, "gloo: " + algorithm, rounds, [&] { gloo->all_reduce(algorithm); });
  }
}

int run(const std::string& folder, int rank, int ranks, const std::string& address, double megabytes, int rounds,
        int connections, bool with_gloo) {
  Endpoint endpoint({.bind_address = address,
                     .secret = "bench",
                     .plain_data = true,
                     .by_unix_sockets = false,
                     .connections = connections,
                     .operation_deadline = std::chrono::minutes(5)});
  const auto comm = endpoint.connect(meet(endpoint, folder, rank, ranks), std::chrono::seconds(60));
  const ReductionShape shape{.shards = power_of_two_at_least(ranks),
                             .size = static_cast<std::int64_t>(megabytes * 1e6 / sizeof(float))};
  measure_tree(*comm, shape, rounds);
  if (with_gloo) measure_gloo(*comm, address, shape.size, rounds);
  return 0;
}

}  // namespace
}  // namespace dtrain::comm

int main(int argc, char** argv) {
  if (argc != 8 && argc != 9) {
    fmt::print(stderr, "usage: {} FOLDER RANK RANKS ADDRESS MEGABYTES ROUNDS CONNECTIONS [gloo]\n", argv[0]);
    return 2;
  }
  try {
    return dtrain::comm::run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4], std::atof(argv[5]),
                             std::atoi(argv[6]), std::atoi(argv[7]), argc == 9);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", argv[2], error.what());
    return 1;
  }
}
