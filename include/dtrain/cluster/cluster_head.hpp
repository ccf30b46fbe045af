// The head of a cluster, reached over ssh from the user's machine.
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

// Login names that the images of this cluster may have, the likeliest first.
std::vector<std::string> logins_of(const cluster::Fleet& fleet);
// Options with the user's own keys and configuration. Each cluster has its own known_hosts file, because addresses are
// reused; its nodes are known by ssh_target().
net::SshOptions cluster_ssh_options(const std::string& cluster);
// The address at which this machine reaches the node.
const std::string& address_of(const cluster::Node& node);
// The node for ssh. Its host key is known by the instance id: a head that takes the place of a lost one has its private
// address, and another key.
net::SshTarget ssh_target(const cluster::Node& node, const std::string& user);
// Warns where no login with this public key, which new machines are to accept, can succeed from here.
void warn_of_locked_key(const std::string& cluster, const std::string& public_key, Reporter& reporter);

// How this machine reaches the head; nullopt: it is no node of that cluster.
std::optional<launcher::AgentRegistry> registry_of(const std::string& cluster);

// The request that announces to the head which instances carry the cluster's tags: only those may register. Where the
// tags say that the cluster is to stop, or that its budget is spent, it also holds the queue of jobs; the next one that
// does not say so lets the queue go on.
Json announcement(const cluster::Fleet& fleet);

class ClusterHead {
 public:
  // Connects to the head, and retries for `patience`, because a booting machine answers late; for three minutes at most
  // where sshd answers but takes no key, and not where the head has another host key. Throws UsageError if there is no
  // head and Stopped on request. `note`: takes lines about what is waited for.
  using Note = std::function<void(const std::string& line)>;
  ClusterHead(
      const cluster::Fleet& fleet, std::chrono::seconds patience, Note note = [](const std::string&) {},
      std::stop_token stop = {});
  // Over a connection to the head.
  ClusterHead(net::SshSession session, Note note) : note_(std::move(note)), session_(std::move(session)) {}

  net::SshSession& session() { return session_; }
  // Sends a request to the registry on the head and returns the answer. Throws RemoteError.
  Json ask(const Json& question);
  // Whether the head has the program.
  bool has_program();
  // True: the head has booted and waits for the program to be uploaded.
  bool waits_for_program();
  // Uploads this program to the head once its boot waits for it. UsageError: it waits for another one. RemoteError: it
  // has not come so far within `patience`.
  void bring_program(std::chrono::seconds patience);
  void announce(const cluster::Fleet& fleet) { ask(announcement(fleet)); }
  // Waits until as many nodes are registered as there are instances, the boot of one of them failed, or `patience` is
  // over. Returns the registry's list.
  Json wait_for_nodes(const cluster::Fleet& fleet, std::chrono::seconds patience);

 private:
  void announce_until(const cluster::Fleet& fleet, std::chrono::steady_clock::time_point until);

  Note note_;
  net::SshSession session_;
};

// The last part of `up` and `add`: uploads the program to the head and waits until the nodes are registered. Notes why
// the head cannot be reached.
// partly_done, with a message for the user: some nodes are not registered.
ExitCode settle_nodes(const cluster::Fleet& fleet, std::chrono::seconds patience, Reporter& reporter);

}  // namespace dtrain::cluster
