// Several workers on one machine, each beside its own memory.
#pragma once

#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>

namespace dtrain::job {

// Call before the first thread that computes or loads. Where workers of so many threads spread evenly over the NUMA
// nodes of this machine, the process keeps to one node; what is returned holds its place there against other workers.
FileDescriptor sit_near_memory(int threads, Reporter& reporter);

}  // namespace dtrain::job
