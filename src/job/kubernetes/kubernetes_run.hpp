// --launcher kubernetes outside of the cluster: applies the objects of a training, shows its log, and returns its exit
// code.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>

#include "config/job_options.hpp"

namespace dtrain::job {

// The command that the coordinator's pod runs: that of the user with all values that the user chose here, also in files
// and variables, without what concerns this machine only. Variables of --env are there by name, for their values are in
// a Secret. `program`: the words after --. Throws UsageError for options that only look at one process.
std::vector<std::string> pod_command(const std::string& command, const config::JobOptions& options,
                                     const config::OptionSet& set, const std::vector<std::string>& program);

// With --kube-print prints the manifests but the Secret. With --detach returns once they are applied. Otherwise blocks
// until the training is over, and removes all objects but the claim. The first stop signal asks the training to save
// and end, the second one ends it at once. Throws UsageError if there is no kubectl or context, before anything is
// made; RemoteError if kubectl fails; Interrupted if a signal ended a training that did not run yet.
ExitCode run_on_kubernetes(const config::JobOptions& options, const std::string& job_folder,
                           const std::vector<std::string>& command, Reporter& reporter);

// Path of the job folder in the pods.
std::string pod_job_folder(const config::JobOptions& options, const config::OptionSet& set);

}  // namespace dtrain::job
