// --launcher kubernetes outside of the cluster: applies the objects of a training, shows its log, and returns its exit
// code.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>

#include "config/job_options.hpp"

namespace dtrain::job {

// With --kube-print prints the manifests but the Secret. With --detach returns once they are applied. Otherwise blocks
// until the training is over, and removes all objects but the claim. The first stop signal asks the training to save
// and end, the second one ends it at once. Throws UsageError if there is no kubectl or context, before anything is
// made; RemoteError if kubectl fails; Interrupted if a signal ended a training that did not run yet. `time_to_end`: how
// long a program that the workers run may take to save and end.
ExitCode run_on_kubernetes(const config::JobOptions& options, const std::string& job_folder,
                           const std::vector<std::string>& command, Reporter& reporter,
                           config::Seconds time_to_end = config::Seconds(0));

}  // namespace dtrain::job
