#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "ssh_words.hpp"

namespace dtrain::cli {
namespace {

struct SshCommand {
  config::ClusterPlace place;
  std::string node;
  std::vector<std::string> words;
  std::vector<std::string> local, remote, dynamic;
  bool write_config = false;
};

void add_forward(config::OptionSet& set, const char* flag, std::vector<std::string>& field, const char* value,
                 const char* help) {
  config::Option& option = set.add_custom(
      flag, value, help, [&field](const std::string& text) { field = split(text, config::kBetweenRepeated); },
      [&field] { return join(field, ","); });
  option.flag_only = option.repeats = true;
}

void bind(config::OptionSet& set, SshCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  set.add("NODE", options.node, "NODE",
          "name or instance id of the node, as shown by `dtrain cluster status` (default the head)");
  set.add_words("COMMAND", options.words,
                "command for the user's shell on the node, words joined by blanks (default an interactive shell)");
  // Here and not at `up`: how this machine calls the nodes is no property of the cluster, which others use too.
  set.add("--write-config", options.write_config,
          "write the nodes' names for ssh, scp, rsync and editors instead of logging in, so that `ssh demo.w0001` "
          "works. ~/.ssh/config gets one Include line at its top. `cluster up`, add, remove and ssh on this machine "
          "then keep the names up to date, and `cluster down` removes them")
      .flag_only = true;
  add_forward(set, "-L,--local-forward", options.local, "PORT:HOST:PORT",
              "forward a local port, like -L of ssh(1); may be repeated");
  add_forward(set, "-R,--remote-forward", options.remote, "PORT:HOST:PORT",
              "forward a port of the node, like -R of ssh(1); may be repeated");
  add_forward(set, "-D,--dynamic-forward", options.dynamic, "PORT",
              "forward a local port as a SOCKS proxy, like -D of ssh(1); may be repeated");
}

// The login user, asked for at the head. The error of a refused connection adds what the account says about it.
std::string user_on(const cluster::Fleet& fleet) {
  try {
    return cluster::ClusterHead(fleet, std::chrono::seconds(0)).session().user();
  } catch (const RemoteError& error) {
    const auto key = fleet.options.find("key");
    const std::string sources = fleet.group ? fmt::format("{}", fmt::join(fleet.group->ssh_sources, ", ")) : "nobody";
    throw RemoteError(
        error.what(),
        fmt::format("port 22 is open to {} and the key is {}; `dtrain cluster up {} --ssh-from me` opens the port to "
                    "your present address",
                    sources, key == fleet.options.end() ? "one of ~/.ssh/id_*" : key->second, fleet.name));
  }
}

std::vector<std::string> line_of_ssh(const SshCommand& options, const cluster::Fleet& fleet,
                                     const cluster::Node& node) {
  const std::string user = user_on(fleet);
  std::vector<std::string> line = {"ssh"};
  const auto add = [&line](const std::vector<std::string>& words) {
    line.insert(line.end(), words.begin(), words.end());
  };
  add(options_of_ssh(fleet.name));
  if (node.public_ip.empty() && node.role != cluster::Role::head) {
    add({"-o", fmt::format("ProxyCommand=ssh {} -W %h:%p {}", fmt::join(options_of_ssh(fleet.name), " "),
                           fmt::join(words_of_target(cluster::ssh_target(*fleet.head(), user)), " "))});
  }
  for (const std::string& one : options.local) add({"-L", one});
  for (const std::string& one : options.remote) add({"-R", one});
  for (const std::string& one : options.dynamic) add({"-D", one});
  add(words_of_target(cluster::ssh_target(node, user)));
  if (!options.words.empty()) add({"--", join(options.words, " ")});
  return line;
}

ExitCode act(const SshCommand& options, const config::OptionSet&, Reporter& reporter) {
  cluster::Fleet fleet;
  {
    ClusterCloud cloud(options.place, reporter);
    fleet = cluster::read_fleet(cloud.aws(), options.place.name);
    if (options.write_config) require_there(fleet, cloud.aws());
  }
  if (options.write_config) {
    answer_ssh_config(fleet.name, cluster::write_ssh_entries(fleet), cluster::ssh_names(fleet), reporter);
    return ExitCode::ok;
  }
  cluster::renew_ssh_entries(fleet, reporter);
  const cluster::Node* node = options.node.empty() ? fleet.head() : fleet.find(options.node);
  if (!node) {
    throw UsageError(options.node.empty() ? fmt::format("cluster {} has no head", fleet.name)
                                          : fmt::format("cluster {} has no node {}", fleet.name, options.node),
                     fmt::format("dtrain cluster status {} lists the nodes; put a command after --", fleet.name));
  }
  if (node->state == "stopped" || node->state == "stopping") {
    const std::string name = node->role == cluster::Role::head ? "the head" : node->name;
    throw UsageError(fmt::format("{} of cluster {} is {}", name, fleet.name, node->state),
                     fmt::format("dtrain cluster start {} starts it", fleet.name));
  }
  std::vector<std::string> line = line_of_ssh(options, fleet, *node);
  become_ssh(std::move(line), reporter);
}

}  // namespace

std::unique_ptr<Command> make_cluster_ssh() {
  auto command = make_command<SshCommand>("cluster ssh", "log in to a node of a cluster, or run a command on it", act);
  command->examples = {"dtrain cluster ssh demo", "dtrain cluster ssh demo w0001 -- nvidia-smi -L",
                       "dtrain cluster ssh demo -L 6006:localhost:6006", "dtrain cluster ssh demo --write-config"};
  command->see_also = {"run", "cluster status", "cluster logs"};
  return command;
}

}  // namespace dtrain::cli
