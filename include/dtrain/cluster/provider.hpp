// Where the machines of a cluster come from: EC2 makes and ends them, a list of hosts only names them. Commands that
// work on any cluster reach its machines through this, and know no service.
//
// What only one kind of cluster can do (spot instances, a list of hosts that grows) is a command of its own there.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/registered.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {

class Provider {
 public:
  virtual ~Provider() = default;

  struct Member {
    std::string name;  // for messages
    net::SshTarget target;
  };
  // All machines of the cluster. May log in to the head.
  virtual std::vector<Member> members() = 0;
  // How this machine logs in to them.
  virtual net::SshOptions ssh_options() const = 0;
  // A connection to the head, tried again for `patience`. Safe from any thread. Throws UsageError or RemoteError where
  // there is none.
  virtual net::SshSession log_in(std::chrono::seconds patience) const = 0;

  // Where log_in() led, for ssh(1).
  virtual net::SshTarget head_target(const net::SshSession& head) const = 0;

  // Throws UsageError if the cluster takes no job that outlives its command. `down_when_done`: the machines are to end
  // after it.
  virtual void require_queue(bool down_when_done) const = 0;
  // Makes the head ready for commands: the program is there, and knows the machines. Returns the line for its shell to
  // which the arguments of the program are added; it enters the folder that the machines share. Throws UsageError if
  // the cluster is not ready.
  using Note = std::function<void(const std::string& line)>;
  virtual std::string prepare_head(net::SshSession& head, const Note& note) = 0;
};

// The cluster of this name, registered by this user or else in the user's AWS account. Throws UsageError if there is
// none, and whatever AwsCalls throws.
std::unique_ptr<Provider> provider_of(const std::string& name);
std::unique_ptr<Provider> provider_of(Fleet fleet);
std::unique_ptr<Provider> provider_of(RegisteredCluster cluster);

// The calls of the account that may have the cluster of this name, which is not registered. Throws UsageError
// where no region is known; its hint names the commands for clusters of one's own hosts, which need none.
net::AwsCalls calls_for(const std::string& name, const net::AwsSettings& settings = {},
                        const net::AwsLimits& limits = {});

// ssh_options() of the cluster of this name, without a call of AWS.
net::SshOptions ssh_options_of(const std::string& name);

}  // namespace dtrain::cluster
