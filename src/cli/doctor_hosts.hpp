// `dtrain doctor -H`: every host looks at itself, and at the others while they are all there.
#pragma once

#include <vector>

#include "doctor_links.hpp"
#include "host_endings.hpp"
#include "ssh_access.hpp"

namespace dtrain::cli {

struct HostReport {
  HostFacts facts;
  Json machine;                   // of to_json(MachineFacts); null: it did not answer
  std::vector<Finding> findings;  // of the host by itself, or why it did not answer
  HostEnding ending = HostEnding::stopped;
};

// One for each host, in the file's order. Blocks; throws Interrupted after a signal. `folder`: empty for none.
std::vector<HostReport> ask_hosts(const SshAccess& access, const std::string& folder);

}  // namespace dtrain::cli
