#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/stack.hpp>
#include <dtrain/net/ssh.hpp>

#include "aws/parallel.hpp"
#include "plan/boot.hpp"

namespace dtrain::cluster {
namespace {

// A boot that goes on, and on machines without systemd also what it started, holds the lock: then this does nothing.
constexpr std::string_view kInstall =
    "umask 077; cat >/var/lib/dtrain-boot.new && mv /var/lib/dtrain-boot.new /var/lib/dtrain-boot && "
    "setsid -f flock -n /var/lib/dtrain-boot.lock sh /var/lib/dtrain-boot </dev/null >/dev/null 2>&1";
constexpr std::string_view kRemove =
    "for one in node jobs heal head; do [ ! -d /run/systemd/system ] || systemctl stop dtrain-$one.service; "
    "rm -f /etc/systemd/system/dtrain-$one.service; done; "
    "rm -rf /var/lib/cloud/scripts/per-boot/dtrain /var/lib/dtrain-boot /var/lib/dtrain-boot.lock /opt/dtrain";
constexpr std::chrono::seconds kForACommand{60};

class MachineLogins {
 public:
  explicit MachineLogins(const Fleet& fleet) : fleet_(fleet) {}

  // Runs it as root, who reads `input`.
  void run(const Node& node, std::string_view script, const std::string& input) {
    net::SshSession session = log_in(node);
    const bool is_root = session.user() == "root";
    net::SshCommand command{.input = input};
    command.argv = is_root ? std::vector<std::string>{"sh", "-c", std::string(script)}
                           : std::vector<std::string>{"sudo", "-n", "sh", "-c", std::string(script)};
    command.deadline = kForACommand;
    std::string said;
    command.on_error = [&](std::string_view text) { said += text; };
    if (!session.run(command).ok()) throw RemoteError(fmt::format("{}: {}", session.name(), trim(said)));
  }

 private:
  // The first user of the image who is root, or may become root.
  net::SshSession log_in(const Node& node) {
    std::string why;
    for (const std::string& user : logins_of(fleet_)) {
      try {
        net::SshSession session =
            net::SshSession::connect({.host = address_of(node), .user = user}, options_for(node, user));
        const net::SshCommand may{.argv = {"sudo", "-n", "true"}, .deadline = kForACommand};
        if (user == "root" || session.run(may).ok()) return session;
        if (why.empty()) why = fmt::format("{} may not run sudo there", session.name());
      } catch (const RemoteError& error) {
        if (why.empty()) why = error.what();
      }
    }
    throw RemoteError(why);
  }

  // A machine without a public address is reached through the head.
  net::SshOptions options_for(const Node& node, const std::string& user) {
    net::SshOptions options = cluster_ssh_options(fleet_.name);
    const Node* head = fleet_.head();
    if (!node.public_ip.empty() || !head || head->public_ip.empty() || node.role == Role::head) return options;
    const Path file = options.known_hosts.parent_path() / fmt::format("jump_{}", node.private_ip);
    write_file_atomic(file, fmt::format("Host {}\n  ProxyJump {}@{}\n", node.private_ip, user, head->public_ip));
    net::use_only(file, options);
    return options;
  }

  const Fleet& fleet_;
};

// What could not be done, a line each, in the order of the nodes.
std::vector<std::string> on_each(const std::vector<const Node*>& nodes, const std::function<void(const Node&)>& act) {
  std::vector<std::string> failures(nodes.size());
  std::vector<std::function<void()>> pieces;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    pieces.push_back([&, at] {
      try {
        act(*nodes[at]);
      } catch (const RemoteError& error) {
        failures[at] = fmt::format("{} ({}): {}", nodes[at]->name, nodes[at]->instance_id, error.what());
      }
    });
  }
  do_all(pieces);
  std::erase(failures, std::string());
  return failures;
}

std::vector<const Node*> adopted_in(const Fleet& fleet) {
  std::vector<const Node*> nodes;
  for (const Node& node : fleet.nodes) {
    if (is_adopted(node) && node.state == "running") nodes.push_back(&node);
  }
  return nodes;
}

}  // namespace

std::vector<std::string> install_on_machines(const Fleet& fleet, const ClusterRequest& request,
                                             const Account& account) {
  const Node* head = fleet.head();
  if (!head) throw UsageError(fmt::format("cluster {} has no head", fleet.name));
  ClusterRequest gentle = request;
  gentle.admission = fleet.group->tags.at(tag::kAdmission);
  // These machines are the stack's: none may be turned off because it did not boot.
  gentle.spec.keep_failed = true;
  gentle.spec.time_to_live = gentle.spec.autostop = std::chrono::seconds(0);
  MachineLogins logins(fleet);
  return on_each(adopted_in(fleet), [&](const Node& node) {
    const bool is_head = node.role == Role::head;
    logins.run(node, kInstall,
               boot_script(gentle, account, is_head ? NodeBoot::Role::head : NodeBoot::Role::worker,
                           is_head ? std::string() : head->private_ip, account.file_system));
  });
}

std::vector<std::string> remove_from_machines(const Fleet& fleet) {
  MachineLogins logins(fleet);
  return on_each(adopted_in(fleet), [&](const Node& node) { logins.run(node, kRemove, {}); });
}

}  // namespace dtrain::cluster
