// With less than this a host is no good: no worker is started there, and `dtrain doctor` calls it a problem.
#pragma once

#include <cstdint>

namespace dtrain::job {

// Logs, ledger and a checkpoint of the size of most models; with less the first save fails.
constexpr std::uint64_t kLeastDisk = 64 << 20;
// The program, its libraries and a small model; with less the kernel ends processes.
constexpr std::uint64_t kLeastMemory = 256 << 20;

}  // namespace dtrain::job
