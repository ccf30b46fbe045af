// Editing `host_worker` of a running job, for `hosts add` and `hosts remove`.
#pragma once

#include <functional>
#include <string>

#include "job_folder.hpp"

namespace dtrain::cli {

// Replaces host_worker whole by what `edit` makes of it, and tells the coordinator, which then acts at once and on any
// number of hosts. One edit at a time: others wait. Throws what `edit` throws, and what ask_coordinator() throws before
// anything is changed; UsageError when the job is not elastic.
void edit_hosts(const JobFolder& folder, const std::function<std::string(const std::string& text)>& edit);

}  // namespace dtrain::cli
