// The head of a cluster, reached over ssh from wherever the person is.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/launcher/agent_registry.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {

// Users that the images of this cluster may have, the likeliest first.
std::vector<std::string> logins_of(const cluster::Fleet& fleet);
// With the person's own keys and configuration; host keys are kept for each cluster, as addresses are used again.
net::SshOptions cluster_ssh_options(const std::string& cluster);
// Where the node is reached from here.
const std::string& address_of(const cluster::Node& node);

// How this machine reaches the head; nullopt: it is no node of that cluster.
std::optional<launcher::AgentRegistry> registry_of(const std::string& cluster);

// The question by which the head learns who is in the account with the cluster's tags: only they may register.
Json announcement(const cluster::Fleet& fleet);

class ClusterHead {
 public:
  // Tries until `patience` is over: a machine that boots answers only after a while. UsageError: there is no head.
  // `note`: takes lines for people who want to know more.
  using Note = std::function<void(const std::string& line)>;
  // Stopped: asked to.
  ClusterHead(
      const cluster::Fleet& fleet, std::chrono::seconds patience, Note note = [](const std::string&) {},
      std::stop_token stop = {});

  net::SshSession& session() { return session_; }
  // What the registry on the head answers. RemoteError.
  Json ask(const Json& question);
  // Whether the program is there already.
  bool has_program();
  // It boots no longer, and has said which program it is to get.
  bool waits_for_program();
  // Brings this program, which the head waits for. UsageError: it waits for another one.
  void bring_program();
  void announce(const cluster::Fleet& fleet) { ask(announcement(fleet)); }
  // Until as many nodes are registered as there are instances, one failed, or `patience` is over; what the registry
  // lists then.
  Json wait_for_nodes(const cluster::Fleet& fleet, std::chrono::seconds patience);

 private:
  Note note_;
  net::SshSession session_;
};

// The end of `up` and `add`: the head has the program, and the nodes are registered. partly_done, with words for the
// person: not all of them, and why.
ExitCode settle_nodes(const cluster::Fleet& fleet, std::chrono::seconds patience, Reporter& reporter);

}  // namespace dtrain::cluster
