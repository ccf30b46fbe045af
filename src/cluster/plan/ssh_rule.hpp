// Who may log in to the nodes: pure functions.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

// Whether two CIDRs are the same block; EC2 stores 10.1.2.3/8 as 10.0.0.0/8.
bool is_same_block(const std::string& a, const std::string& b);

bool is_open_to(const SecurityGroup& group, const std::string& source);

// What is to change so that dtrain opens port 22 to `source` and to nothing else.
struct SshChange {
  bool opens = false;
  std::vector<std::string> closes{};  // of what dtrain opened before
  bool any() const { return opens || !closes.empty(); }
};
SshChange ssh_change(const SecurityGroup& group, const std::string& source);
// "open port 22 to 203.0.113.7/32, and close it to 198.51.100.1/32".
std::string ssh_change_text(const SshChange& change, const std::string& source);
// The blocks beside `source` to which others opened port 22.
std::vector<std::string> other_sources(const SecurityGroup& group, const std::string& source);

}  // namespace dtrain::cluster
