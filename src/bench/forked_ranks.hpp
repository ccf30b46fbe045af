// Ranks as forked processes of this machine, for benchmarks, with a page of shared memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/comm/mesh.hpp>

namespace dtrain::bench {

constexpr std::string_view kLoopback = "127.0.0.1";

// The rank, as seen in the forked process.
class ForkedRank {
 public:
  ForkedRank(int rank, int ranks, std::string secret, std::span<double> numbers, std::span<std::uint16_t> ports)
      : rank_(rank), ranks_(ranks), secret_(std::move(secret)), numbers_(numbers), ports_(ports) {}
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::span<double> numbers() { return numbers_; }  // returned by run_forked()
  // Makes this rank's endpoint, and the plan of all once every rank has one.
  std::unique_ptr<comm::Endpoint> make_endpoint(comm::MeshPlan& plan, bool by_unix_sockets = true);
  // Another one, whose TCP connections carry plain bytes; the ranks of `comm` make it together.
  std::unique_ptr<comm::Endpoint> make_plain_endpoint(comm::MeshPlan& plan, comm::Communicator& comm);

 private:
  int rank_, ranks_;
  std::string secret_;
  std::span<double> numbers_;
  std::span<std::uint16_t> ports_;
};

// Calls work(rank) in `ranks` processes, and returns `numbers` numbers of each. The caller must have no other threads.
// Throws Error if a rank fails or exceeds the deadline; no process is left then, nor when the caller is killed.
std::vector<std::vector<double>> run_forked(int ranks, int numbers, std::chrono::seconds deadline,
                                            const std::function<void(ForkedRank&)>& work);

}  // namespace dtrain::bench
