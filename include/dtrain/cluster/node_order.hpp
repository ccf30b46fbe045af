// The settings of a node's processes: node.json, which its user data writes at boot.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::cluster {

struct NodeOrder {
  std::string cluster;
  std::string head{};  // numeric address; empty: this node is the head
  std::uint16_t port = 0;
  std::string admission{};  // the cluster's admission secret
  std::string bundle{};     // its SHA-256
  std::string login = "root";
  std::string region{};
  std::string shared_folder{};                 // empty: none
  std::chrono::seconds replace_head_after{0};  // until this worker starts one for a head that has ended; 0: never
  bool adopted = false;                        // dtrain did not start this machine, so it does not power it off
};

// Throws DataError or Error.
NodeOrder read_node_order(const Path& file);

}  // namespace dtrain::cluster
