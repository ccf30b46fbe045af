// How the machines of a cluster are, as EC2 sees them.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

struct NodeHealth {
  Node node{};
  std::string system{}, instance{};  // EC2's checks: "ok", "impaired", "initializing", ...; empty: none was told
  std::string event{};               // what AWS plans for it, such as a retirement; empty: nothing
  bool well() const;
  std::string why() const;  // what is wrong; empty where it is well
};

// Of all nodes, in the fleet's order. Blocks for a call per thousand nodes.
std::vector<NodeHealth> read_health(net::AwsCalls& aws, const Fleet& fleet);

}  // namespace dtrain::cluster
