// One rank of an exchange of gradients between addresses, to be started once for each rank, in its own network
// namespace: tests/bench/exchange.py. Ranks find each other's ports in a folder. Rank 0 prints the seconds of every
// round, each of the slowest rank.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

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

int run(const std::string& folder, int rank, int ranks, const std::string& address, double megabytes, int rounds) {
  Endpoint endpoint({.bind_address = address,
                     .secret = "bench",
                     .plain_data = true,
                     .by_unix_sockets = false,
                     .operation_deadline = std::chrono::minutes(5)});
  const auto comm = endpoint.connect(meet(endpoint, folder, rank, ranks), std::chrono::seconds(60));
  const ReductionShape shape{.shards = power_of_two_at_least(ranks),
                             .size = static_cast<std::int64_t>(megabytes * 1e6 / sizeof(float))};
  const ShardSpan span = shards_of_rank(rank, ranks, shape.shards);
  for (int round = -1; round < rounds; ++round) {
    comm->all_gather({});
    const Clock::time_point begin = Clock::now();
    const auto reduction = comm->begin_reduction(shape, {});
    for (int shard = span.first; shard < span.last; ++shard) {
      std::ranges::fill(reduction->leaf(shard), 1.0f);
      reduction->ready(shard, 0, shape.size);
    }
    std::vector<float> sum = reduction->finish().sum;
    const double seconds = slowest(*comm, std::chrono::duration<double>(Clock::now() - begin).count());
    const bool right = std::ranges::all_of(sum, [&](float value) { return value == static_cast<float>(shape.shards); });
    if (!right) throw std::runtime_error("a wrong sum");
    comm->recycle(std::move(sum));
    if (rank == 0 && round >= 0) fmt::print("{:.6f}\n", seconds);  // the first round warms connections and memory up
  }
  return 0;
}

}  // namespace
}  // namespace dtrain::comm

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "usage: {} FOLDER RANK RANKS ADDRESS MEGABYTES ROUNDS\n", argv[0]);
    return 2;
  }
  try {
    return dtrain::comm::run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4], std::atof(argv[5]),
                             std::atoi(argv[6]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", argv[2], error.what());
    return 1;
  }
}
