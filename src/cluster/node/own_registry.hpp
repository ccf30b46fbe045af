// Where programs of the user who logs in on this node find the cluster's head.
#pragma once

#include <string>

#include <dtrain/launcher/agent_registry.hpp>

namespace dtrain::cluster {

// Into the node's folder, for that user alone. Throws Error.
void publish_registry(const Path& folder, const std::string& login, const launcher::AgentRegistry& registry);

}  // namespace dtrain::cluster
