// The process on every node that registers with the cluster's head, keeps the files about the cluster on this machine
// up to date, and starts agents of jobs when the head requests it.
#pragma once

#include <functional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/cluster/node_order.hpp>

namespace dtrain::cluster {

struct NodeOptions {
  NodeOrder order;
  Path folder;  // kNodeFolder
  std::function<void(const std::string& line)> on_note{};
};

// Returns after a stop signal; until then every failure is retried. Agents that it started live on.
void run_node(const NodeOptions& options);

// Makes this process one of the login user, who owns the files of jobs. For a process of root with one thread; one of
// another user stays as it is, and root stays root on an image that lacks the user, as for agents. Throws Error.
void become_login_user(const std::string& login);

}  // namespace dtrain::cluster
