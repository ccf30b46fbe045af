#include "machine_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::job {
namespace {

// Connections, pipes and logs of the coordinator itself and of each agent that it serves.
constexpr std::size_t kOwnFiles = 48, kFilesOfAnAgent = 8;
// A rank has a connection to every other rank and the memory that this shares, and for a moment those of the next
// generation.
constexpr std::size_t kFilesOfAPeer = 4;
// Ranks that start within a minute; more of them wait for each other until the timeouts end the job.
constexpr int kMostRanks = 128, kRanksOfAProcessor = 16;

std::size_t files_of(const MachineLoad& load) {
  const auto hosts = static_cast<std::size_t>(load.hosts), ranks = static_cast<std::size_t>(load.ranks);
  const std::size_t coordinator = kOwnFiles + kFilesOfAnAgent * hosts;
  return load.is_here ? std::max(coordinator, kOwnFiles + kFilesOfAPeer * ranks) : coordinator;
}

}  // namespace

std::optional<Refusal> refusal_of(const MachineLoad& load, const MachineLimits& limits) {
  const int most = kMostRanks + kRanksOfAProcessor * limits.processors;
  if (load.is_here && load.ranks > most) {
    return Refusal{fmt::format("{} ranks on this machine: it has {} processors, and runs at most {}", load.ranks,
                               limits.processors, most),
                   "start fewer, or give other machines with -H"};
  }
  if (files_of(load) <= limits.files) return std::nullopt;
  return Refusal{fmt::format("a process may open {} files here, but {} on {} need {}", limits.files,
                             load.ranks == 1 ? "1 rank" : fmt::format("{} ranks", load.ranks),
                             load.hosts == 1 ? "1 host" : fmt::format("{} hosts", load.hosts), files_of(load)),
                 fmt::format("`ulimit -n {}` before the command raises the limit", files_of(load))};
}

void prepare_machine(const MachineLoad& load) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  if (const auto refusal = refusal_of(load, {files.rlim_max, usable_cpus()})) {
    throw UsageError(refusal->what, refusal->hint);
  }
  if (files.rlim_cur >= files_of(load)) return;
  files.rlim_cur = files_of(load);
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace dtrain::job
