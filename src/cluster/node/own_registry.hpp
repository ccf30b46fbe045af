// The registry file of this node, from which programs of its login user learn the cluster's head.
#pragma once

#include <string>

#include <dtrain/launcher/agent_registry.hpp>

namespace dtrain::cluster {

// Writes it to the node's folder, readable for that user alone. Throws Error.
void publish_registry(const Path& folder, const std::string& login, const launcher::AgentRegistry& registry);

}  // namespace dtrain::cluster
