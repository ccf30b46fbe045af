// A cluster of registered hosts as its head and its hosts describe it now.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

#include "site.hpp"

namespace dtrain::cli {

struct RegisteredLook {
  cluster::RegisteredCluster cluster;  // as the head has it; as it was seen last, where `unknown`
  std::string unknown{};               // why the head told nothing; empty: it did
  bool answers = false;                // the head is there, even if it refused to tell
  bool runner = false;                 // whether the queue is run
  Json jobs = Json::array(), events = Json::array();
  std::vector<SeenHost> hosts{};                   // in the cluster's order; empty: they were not asked
  std::map<std::string, std::string> unreached{};  // hosts to which the head cannot log in, and why

  // The host's clock minus the head's; nullopt: unknown.
  std::optional<cluster::ClockOffset> offset_of(std::size_t host) const;
};

// Asks the head alone. What it says is remembered for commands that find it away.
RegisteredLook ask_registered(const cluster::RegisteredCluster& known, Reporter& reporter);
// Asks the head, unless `no_head`, then all hosts at the same time; with `deep` also whether the head reaches them.
RegisteredLook look_at_registered(const cluster::RegisteredCluster& known, bool no_head, bool deep, Reporter& reporter);

}  // namespace dtrain::cli
