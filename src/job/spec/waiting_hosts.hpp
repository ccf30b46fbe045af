// The initial hosts of a job with --launcher folder: those that wait in its folder.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "host_list.hpp"

namespace dtrain::job {

// Blocks until -n hosts wait in the job folder, and returns these; hosts that wait beyond them join by themselves. An
// elastic job that has run before (`resume`) begins with --min-workers if no other host comes for some seconds. Throws
// Interrupted at a stop signal.
StartingHosts await_hosts(const config::JobOptions& options, bool resume, Reporter& reporter);

}  // namespace dtrain::job
