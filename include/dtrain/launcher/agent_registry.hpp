// Where a node of a cluster finds the process that knows all nodes, and may have agents started on them: its head.
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
  std::string token;  // the cluster's: never to be printed
};

// As a file that only its owner may read. nullopt: there is none, so this machine is no node. Throws DataError.
std::optional<AgentRegistry> read_agent_registry(const Path& file);
void write_agent_registry(const Path& file, const AgentRegistry& registry);
// Where nodes keep it.
inline constexpr const char* kAgentRegistryFile = "/opt/dtrain/registry.json";

// One question, and the head's answer. Blocks. RemoteError: it does not answer in time, or refuses.
Json ask_registry(const AgentRegistry& registry, const Json& question, std::chrono::milliseconds deadline);

}  // namespace dtrain::launcher
