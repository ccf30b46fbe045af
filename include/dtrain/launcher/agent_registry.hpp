// The address of a cluster's head, which knows all nodes and can start agents on them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::launcher {

struct AgentRegistry {
  std::string cluster;
  std::string address;  // numeric
  std::uint16_t port = 0;
  std::string token;            // secret of the cluster: never printed
  std::string shared_folder{};  // of all nodes; empty: there is none
  bool adopted = false;         // the cluster did not start this machine
};

// The registry file, which only its owner may read. nullopt: the file does not exist, so this machine is no node.
// Throws DataError.
[[nodiscard]] std::optional<AgentRegistry> read_agent_registry(const Path& file);
void write_agent_registry(const Path& file, const AgentRegistry& registry);
// Path of that file on nodes.
inline constexpr const char* kAgentRegistryFile = "/opt/dtrain/registry.json";

// Sends one request to the head and returns the answer. Blocks. Throws RemoteError if the head does not answer in time
// or refuses.
Json ask_registry(const AgentRegistry& registry, const Json& question, std::chrono::milliseconds deadline);

}  // namespace dtrain::launcher
