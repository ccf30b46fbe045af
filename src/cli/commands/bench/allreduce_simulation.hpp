// `bench allreduce --simulate`: the real schedule of the exchange on links and hosts that are not there.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/comm/simulation.hpp>
#include <dtrain/train/gradient_compression.hpp>

namespace dtrain::cli {

// Of exchanges between processes of this machine.
inline constexpr std::chrono::seconds kDeadline(300), kConnectDeadline(30);
// Processor time of all threads of this process.
double cpu_seconds();

struct SimulationOptions {
  std::vector<double> ranks;  // empty: none is simulated
  std::optional<comm::LinkModel> link;
  double unevenness = 0.3;  // as TCP: tests/bench/exchange.md
  int shards = 0;           // 0: the smallest power of two that is no less than the ranks
  int ranks_per_host = 1;
  bool plain = false;
  bool changes = false;        // simulate joins, losses and a takeover too
  int newcomers = 1;           // that join at once
  double state_megabytes = 0;  // 0: twice the array
};

// What of a real exchange on this machine the model of a host comes from.
struct HostProbe {
  int ranks = 0;
  int rounds = 0;
};

void check(const SimulationOptions& options);
// `probe`: nullopt: hosts take no time.
// Beside gradients as they are, those of each kind of `compressions`.
ExitCode simulate(const SimulationOptions& options, std::int64_t floats, bool rounded,
                  const std::vector<train::GradientCompression>& compressions, const std::optional<HostProbe>& probe,
                  Reporter& reporter);

}  // namespace dtrain::cli
