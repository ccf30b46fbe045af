// The check of a host that joins a job: `dtrain agent --check`, a process of its own, so that a dead disk or network
// blocks nothing else.
#pragma once

#include <cstdint>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// The minimum of a host: with less, no worker is started there, and `dtrain doctor` reports a problem.
// Logs, ledger and a checkpoint of most models; with less the first save fails.
constexpr std::uint64_t kLeastDisk = 64 << 20;
// The program, its libraries and a small model; with less the kernel kills processes.
constexpr std::uint64_t kLeastMemory = 256 << 20;

// What the workers of a host need, in bytes.
struct NeededMemory {
  std::uint64_t training = 0;  // parameters, gradients and optimizer state, and those received while joining
  std::uint64_t decoded = 0;   // pictures that --cache-decoded lets them keep
};
NeededMemory memory_of_host(const config::TrainOptions& options, std::int64_t parameters);

// Prints one line: {"failure": "" or the reason why this host is unfit, ...measurements}. `job` is an
// elastic::WorkerJob.
ExitCode check_host(const Json& job, Reporter& reporter);

}  // namespace dtrain::job
