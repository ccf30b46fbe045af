// `dtrain doctor -H`: every host looks at itself, and at the others while they are all there.
#pragma once

#include <vector>

#include <dtrain/launcher/host_endings.hpp>

#include "doctor_links.hpp"
#include "job/spec/ssh_access.hpp"

namespace dtrain::doctor {

struct HostDiagnosis {
  HostFacts facts;
  Json machine;                   // of to_json(MachineFacts); null: it did not answer
  std::vector<Finding> findings;  // of the host by itself, or why it did not answer
  launcher::HostEnding ending = launcher::HostEnding::stopped;
};

// One for each host, in the file's order. Blocks; throws Interrupted after a signal. `folder`: empty for none.
std::vector<HostDiagnosis> ask_hosts(const job::SshAccess& access, const std::string& folder);

}  // namespace dtrain::doctor
