// The user's command as the pod of the coordinator runs it. Pure.
#pragma once

#include <string>
#include <vector>

#include "config/job_options.hpp"

namespace dtrain::job {

// The command that the coordinator's pod runs: that of the user with all values that the user chose here, also in files
// and variables, without what concerns this machine only. Variables of --env are there by name, for their values are in
// a Secret. `program`: the words after --. Throws UsageError for options that only look at one process, and for words
// that are not UTF-8.
std::vector<std::string> pod_command(const std::string& command, const config::JobOptions& options,
                                     const config::OptionSet& set, const std::vector<std::string>& program);

// Those of the lines NAME=VALUE of --env that the Secret holds. Throws UsageError for names that Kubernetes refuses,
// and for values that are not UTF-8.
std::vector<std::string> variables_of_secret(const std::vector<std::string>& variables);

// Path of the job folder in the pods. Throws UsageError for one outside of the shared volume.
std::string pod_job_folder(const config::JobOptions& options, const config::OptionSet& set);

}  // namespace dtrain::job
