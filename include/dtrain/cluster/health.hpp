// The health of a cluster's machines, from EC2, from the head and from the machines themselves.
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
  std::string system{}, instance{};   // EC2's checks: "ok", "impaired", "initializing", ...; empty: not reported
  std::string event{};                // maintenance that AWS has scheduled, such as a retirement; empty: none
  std::optional<int> gpus_of_type{};  // nullopt: unknown
  bool boots_still = false;           // true: it may still be booting
  AgentWord agent{};
  std::optional<Checkup> checkup{};  // nullopt, here and below: not asked, or no answer
  std::optional<ClockOffset> clock{};

  std::vector<std::string> troubles() const;  // problems, as text; empty: none is known
  std::vector<std::string> reported() const;  // those that the machine itself reports
  // What EC2 announced to the machine about its end; nullptr: nothing is known.
  const net::EndNotice* notice() const { return checkup && checkup->notice ? &*checkup->notice : nullptr; }
  bool well() const { return troubles().empty(); }
  std::string why() const;       // all of troubles()
  std::string gpu_text() const;  // "8 GPUs", "no GPU", "GPUs unknown"
};

// What AWS reports of all nodes, in the fleet's order. Blocks for one call per hundred nodes, several of them in
// parallel.
std::vector<NodeHealth> read_health(net::AwsCalls& aws, const Fleet& fleet);

// Adds the head's answer to `check` or `list` (cluster/head.hpp): to `list`, each node's latest report. Throws
// DataError.
void add_answer_of_head(const Fleet& fleet, const Json& answer, std::vector<NodeHealth>& all);

}  // namespace dtrain::cluster
