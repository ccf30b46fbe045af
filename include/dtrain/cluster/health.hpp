// How the machines of a cluster are: as EC2 sees them, as their head does, and as they find themselves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/agents.hpp>
#include <dtrain/cluster/checkup.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

struct NodeHealth {
  Node node{};
  std::string system{}, instance{};   // EC2's checks: "ok", "impaired", "initializing", ...; empty: none was told
  std::string event{};                // what AWS plans for it, such as a retirement; empty: nothing
  std::optional<int> gpus_of_type{};  // nullopt: AWS did not say
  bool boots_still = false;           // it is young enough for that
  AgentWord agent{};
  std::optional<Checkup> checkup{};  // nullopt, here and below: it was not asked, or did not answer
  std::optional<ClockOffset> clock{};

  std::vector<std::string> troubles() const;  // what is wrong, for people; none: it is well, as far as is known
  bool well() const { return troubles().empty(); }
  std::string why() const;       // all of troubles()
  std::string gpu_text() const;  // "8 GPUs", "no GPU", "GPUs unknown"
};

// What AWS says of all nodes, in the fleet's order. Blocks for a call per hundred nodes, several at a time.
std::vector<NodeHealth> read_health(net::AwsCalls& aws, const Fleet& fleet);

// Adds what the head answered to `check` (cluster/head.hpp). Throws DataError.
void add_answer_of_head(const Fleet& fleet, const Json& answer, std::vector<NodeHealth>& all);

}  // namespace dtrain::cluster
