// A host that offers itself to the jobs of a folder: `dtrain hosts join`, and what other commands ask about it.
#pragma once

#include <chrono>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Waits in the folder for orders of a coordinator, and adds this host to an elastic job that runs there. It joins again
// with each later job of the folder. The first SIGTERM or SIGINT makes its worker leave at the next step, takes the
// host out of the job, and returns; a second one ends the worker at once. SIGUSR1 does the same, but then waits for the
// SIGTERM. Throws UsageError for an invalid name, and Error if another process already waits under it, on whatever
// machine.
ExitCode wait_in_folder(const JobFolder& folder, const std::string& host, Reporter& reporter);

// Asks the process that waits under this name on this machine to leave, and returns when it has left. Throws Error if
// there is none, or if it has not left within the limit.
void leave_folder(const JobFolder& folder, const std::string& host, std::chrono::duration<double> limit);

enum class HostProbe { none, alive, ready };
constexpr EnumName<HostProbe> kHostProbeNames[] = {
    {HostProbe::none, "none"}, {HostProbe::alive, "alive"}, {HostProbe::ready, "ready"}};
// alive: the process that waits has renewed its file lately. ready: also, its agent runs in a job. Throws Error that
// says what is missing.
void probe_host(const JobFolder& folder, const std::string& host, HostProbe probe);

}  // namespace dtrain::job
