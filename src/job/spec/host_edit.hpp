// Editing `host_worker` of a running job, for `hosts add` and `hosts remove`.
#pragma once

#include <string>
#include <vector>

#include "job_folder.hpp"

namespace dtrain::job {

struct HostEdit {
  std::vector<std::string> add{};     // lines
  std::vector<std::string> remove{};  // names
  bool any_number = false;            // also more than half of the hosts
};

// The coordinator replaces host_worker whole, one edit after the other from wherever they come, and acts at once.
// Throws what ask_coordinator() throws: UsageError when the job is not elastic or the edit means nothing.
void edit_hosts(const JobFolder& folder, const HostEdit& edit);

}  // namespace dtrain::job
