// What `dtrain doctor -H` says of hosts together: machines, clocks, the shared folder, who reaches whom. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor_findings.hpp"

namespace dtrain::doctor {

// What one host found in the shared folder, after all had written there.
struct FolderFacts {
  std::string write_error;           // of its own file, its rename, its link; empty: they work
  bool made_link = false;            // link(2) to a name that all try for: exactly one may succeed
  std::vector<int> seen;             // whose files it saw with their right content, by number
  std::optional<bool> lock_is_kept;  // a lock that another host holds was refused; nullopt: it could not try
};

struct LinkFacts {
  double milliseconds = 0;
  std::string error;  // why no connection came; empty: one did
};

struct HostFacts {
  std::string name;
  std::string machine;  // machine_identity() there; empty: unknown
  bool answered = false;
  // Its clock less ours is between these, in seconds.
  double clock_at_least = 0, clock_at_most = 0;
  FolderFacts folder;
  std::vector<LinkFacts> links;  // to each host, by number; the one to itself is empty
};

std::vector<Finding> judge_clocks(const std::vector<HostFacts>& hosts);
// `folder`: what was tried; empty: nothing was.
std::vector<Finding> judge_folder(const std::vector<HostFacts>& hosts, const std::string& folder);
// Hosts that are one machine under several names. That may be on purpose.
std::vector<Finding> judge_machines(const std::vector<HostFacts>& hosts);
std::vector<Finding> judge_links(const std::vector<HostFacts>& hosts);

}  // namespace dtrain::doctor
