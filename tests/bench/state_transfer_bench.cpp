// How long newcomers wait for the state of a ResNet-50 with momentum, from one holder or several, over TCP on this
// machine, beside the bare link: the same bytes without hashes. Many newcomers are limited by this machine's
// processors, not by links: newcomers.py measures with links. Prints seconds, the fastest and
// the median of the runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include <dtrain/base/stats.hpp>
#include "meeting.hpp"
#include "train/loop/state_transfer.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kParameters = 25'600'000;
constexpr int kRuns = 7;

backend::ModelState state_of(float value) {
  backend::ModelState state;
  state.parameters.assign(kParameters, value);
  state.optimizer.assign(kParameters, value);
  return state;
}

using Rank = std::function<void(comm::Communicator& comm, backend::ModelState& state)>;

// The seconds that the last of the ranks took, each a thread with its own endpoint.
double time_once(int ranks, const Rank& work) {
  std::vector<std::unique_ptr<comm::Endpoint>> endpoints;
  comm::MeshPlan plan{.generation = 1, .rank = 0, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    endpoints.push_back(std::make_unique<comm::Endpoint>(comm::EndpointOptions{.secret = "bench"}));
    plan.ranks.push_back(endpoints.back()->address());
  }
  std::vector<double> seconds(endpoints.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank, mine = plan]() mutable {
      const auto at = static_cast<std::size_t>(rank);
      mine.rank = rank;
      const auto comm = endpoints[at]->connect(mine, std::chrono::seconds(10));
      backend::ModelState state = state_of(static_cast<float>(rank));
      comm->all_gather({});
      const auto begin = std::chrono::steady_clock::now();
      work(*comm, state);
      seconds[at] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      comm->all_gather({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::ranges::max(seconds);
}

void measure(const char* what, int ranks, const Rank& work) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) times.push_back(time_once(ranks, work));
  fmt::print("{:<32} {:.3f} s fastest, {:.3f} s median\n", what, std::ranges::min(times), median(times));
}

void send_bare(comm::Communicator& comm, backend::ModelState& state) {
  for (const auto& chunk : room_in(state)) {
    if (comm.rank() == 0) comm.send(1, chunk);
    if (comm.rank() == 1) comm.receive(0, chunk);
  }
}

// The first ranks hold the state, the others receive it.
Rank transfer_from(int holders) {
  return [holders](comm::Communicator& comm, backend::ModelState& state) {
    Roles roles;
    for (int rank = 0; rank < comm.size(); ++rank) (rank < holders ? roles.holders : roles.receivers).push_back(rank);
    if (comm.rank() < holders) {
      send_chunks(comm, roles, chunks_of(state), [] {});
    } else {
      receive_chunks(comm, roles, room_in(state), [] {});
    }
  };
}

// One of several processes with addresses of their own (tests/bench/newcomers.py): prints how long this rank took.
int run_rank(const std::string& folder, int rank, int ranks, const std::string& address, double megabytes,
             int holders) {
  comm::Endpoint endpoint({.bind_address = address,
                           .secret = "bench",
                           .plain_data = true,
                           .by_unix_sockets = false,
                           .operation_deadline = std::chrono::minutes(5)});
  const auto comm = endpoint.connect(comm::meet(endpoint, folder, rank, ranks), std::chrono::seconds(60));
  const auto floats = static_cast<std::size_t>(megabytes * 1e6 / sizeof(float));
  backend::ModelState state;
  state.parameters.assign(floats, rank < holders ? 1.0f : 0.0f);
  comm->all_gather({});
  const auto begin = std::chrono::steady_clock::now();
  transfer_from(holders)(*comm, state);
  fmt::print("{:.6f}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  comm->all_gather({});
  return std::ranges::all_of(state.parameters, [](float value) { return value == 1; }) ? 0 : 1;
}

}  // namespace
}  // namespace dtrain::train

int main(int argc, char** argv) {
  using namespace dtrain::train;
  if (argc == 7) {
    return run_rank(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4], std::atof(argv[5]), std::atoi(argv[6]));
  }
  measure("bare link, one holder", 2, send_bare);
  measure("with hashes, one holder", 2, transfer_from(1));
  measure("with hashes, three holders", 4, transfer_from(3));
  measure("one holder, four newcomers", 5, transfer_from(1));
}
