#include "logins.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>

#include "aws/parallel.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::chrono::seconds kForACommand{60};

// The way through the head, then all that the user's own files say: keys, agents and further hops.
std::string jump_config(const Node& node, const Node& head, const std::string& user, const net::SshOptions& options) {
  std::string text = fmt::format("Host {}\n  ProxyJump {}@{}\nHost {}\n  HostKeyAlias {}\nHost *\n", node.private_ip,
                                 user, head.public_ip, head.public_ip, head.instance_id);
  for (const Path& file : {options.config, options.system_config}) {
    if (!file.empty()) text += fmt::format("  Include \"{}\"\n", file.string());
  }
  return text;
}

}  // namespace

net::SshSession MachineLogins::log_in(const Node& node) const {
  std::string why;
  for (const std::string& user : logins_of(fleet_)) {
    try {
      net::SshSession session = net::SshSession::connect(ssh_target(node, user), options_for(node, user));
      const net::SshCommand may{.argv = {"sudo", "-n", "true"}, .deadline = kForACommand};
      if (user == "root" || session.run(may).ok()) return session;
      if (why.empty()) why = fmt::format("{} may not run sudo there", session.name());
    } catch (const RemoteError& error) {
      if (why.empty()) why = error.what();
    }
  }
  throw RemoteError(why);
}

void MachineLogins::run_as_root(net::SshSession& session, std::string_view script, const std::string& input) {
  net::SshCommand command{.input = input};
  command.argv = {"sh", "-c", std::string(script)};
  if (session.user() != "root") command.argv.insert(command.argv.begin(), {"sudo", "-n"});
  command.deadline = kForACommand;
  std::string said;
  command.on_error = [&](std::string_view text) { said += text; };
  if (!session.run(command).ok()) throw RemoteError(fmt::format("{}: {}", session.name(), trim(said)));
}

net::SshOptions MachineLogins::options_for(const Node& node, const std::string& user) const {
  net::SshOptions options = cluster_ssh_options(fleet_.name);
  const Node* head = fleet_.head();
  if (!node.public_ip.empty() || !head || head->public_ip.empty() || node.role == Role::head) return options;
  const Path file = options.known_hosts.parent_path() / fmt::format("jump_{}", node.private_ip);
  write_file_atomic(file, jump_config(node, *head, user, options), kOwnerOnly);
  net::use_only(file, options);
  return options;
}

std::vector<std::string> on_each(const std::vector<const Node*>& nodes, const std::function<void(const Node&)>& act) {
  std::vector<std::string> failures(nodes.size());
  std::vector<std::function<void()>> pieces;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    pieces.push_back([&, at] {
      if (const auto failure = attempt([&] { act(*nodes[at]); }))
        failures[at] = fmt::format("{} ({}): {}", nodes[at]->name, nodes[at]->instance_id, failure->what());
    });
  }
  do_all(pieces);
  std::erase(failures, std::string());
  return failures;
}

}  // namespace dtrain::cluster
