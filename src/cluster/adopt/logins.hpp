// Commands on the machines of a stack, by ssh with the user's own keys, as root.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {

// Safe for concurrent use. `fleet` must outlive it.
class MachineLogins {
 public:
  explicit MachineLogins(const Fleet& fleet) : fleet_(fleet) {}

  // A session of the first user of the image who is root, or may become root. A machine without a public address is
  // reached through the head. Throws RemoteError.
  net::SshSession log_in(const Node& node) const;
  // Runs the script as root, who reads `input`. Throws RemoteError with what the script complains of.
  static void run_as_root(net::SshSession& session, std::string_view script, const std::string& input);

 private:
  net::SshOptions options_for(const Node& node, const std::string& user) const;

  const Fleet& fleet_;
};

// Acts on all nodes, a few at a time. Returns what could not be done, a line each, in the order of the nodes. Throws
// Stopped alone.
std::vector<std::string> on_each(const std::vector<const Node*>& nodes, const std::function<void(const Node&)>& act);

}  // namespace dtrain::cluster
