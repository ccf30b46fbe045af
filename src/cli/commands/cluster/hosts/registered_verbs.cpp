#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/registered.hpp>

#include "cli/commands/cluster/ssh_words.hpp"
#include "commands.hpp"
#include "registered_changes.hpp"
#include "registered_ssh.hpp"
#include "registered_views.hpp"

namespace dtrain::cli {
namespace {

using cluster::RegisteredCluster;

std::string text_of(const Command& command, const char* option) {
  const config::Option* found = command.options.find(option);
  return found ? found->given.value_or("") : "";
}
bool is_given(const Command& command, const char* option) { return !text_of(command, option).empty(); }

std::string needed_text(const Command& command, const char* option, const char* example) {
  std::string text = text_of(command, option);
  if (!text.empty()) return text;
  throw UsageError(fmt::format("{}: {} is missing", command.path, option), fmt::format("for example: {}", example));
}

std::vector<std::string> forwards_of(const Command& command) {
  std::vector<std::string> words;
  const std::pair<const char*, const char*> flags[] = {
      {"local-forward", "-L"}, {"remote-forward", "-R"}, {"dynamic-forward", "-D"}};
  for (const auto& [name, flag] : flags) {
    if (!is_given(command, name)) continue;
    for (const std::string& one : split(text_of(command, name), config::kBetweenRepeated)) {
      words.insert(words.end(), {flag, one});
    }
  }
  return words;
}

ExitCode log_in(const RegisteredCluster& cluster, const Command& command, Reporter& reporter) {
  if (is_given(command, "write-config")) return write_ssh_names(cluster, reporter);
  const std::string name = text_of(command, "NODE");
  const cluster::RegisteredHost* host = name.empty() ? &cluster.head() : cluster.find(name);
  if (!host) {
    throw UsageError(fmt::format("cluster {} has no host {}", cluster.name, name),
                     fmt::format("dtrain cluster status {} lists the hosts; put a command after --", cluster.name));
  }
  std::vector<std::string> line = {"ssh"};
  for (const std::vector<std::string>& words :
       {options_of_ssh(cluster.name), forwards_of(command), words_of_target(host->target())}) {
    line.insert(line.end(), words.begin(), words.end());
  }
  if (is_given(command, "COMMAND")) line.insert(line.end(), {"--", text_of(command, "COMMAND")});
  become_ssh(std::move(line), reporter);
}

// A verb that registered hosts have, with the options that mean something there.
struct HostsVerb {
  std::vector<std::string> options;
  ExitCode (*act)(const RegisteredCluster& cluster, const Command& command, Reporter& reporter);
};

const std::map<std::string, HostsVerb>& verbs() {
  static const std::map<std::string, HostsVerb> all = {
      {"cluster status",
       {{"no-head"},
        [](const auto& cluster, const auto& command, auto& reporter) {
          return show_status(cluster, is_given(command, "no-head"), reporter);
        }}},
      {"cluster health",
       {{"no-head"},
        [](const auto& cluster, const auto& command, auto& reporter) {
          return show_health(cluster, is_given(command, "no-head"), reporter);
        }}},
      {"cluster cost",
       {{"forecast", "job-dir"},
        [](const auto& cluster, const auto& command, auto& reporter) {
          const ForecastChoice choice{is_given(command, "forecast"), text_of(command, "job-dir")};
          return show_cost(cluster, choice, reporter);
        }}},
      {"cluster events",
       {{}, [](const auto& cluster, const auto&, auto& reporter) { return show_events(cluster, reporter); }}},
      {"cluster ssh",
       {{"NODE", "COMMAND", "local-forward", "remote-forward", "dynamic-forward", "write-config"}, log_in}},
      {"cluster add",
       {{"COUNT|HOST", "price", "yes"},
        [](const auto& cluster, const auto& command, auto& reporter) {
          return add_hosts(cluster, needed_text(command, "COUNT|HOST", "dtrain cluster add lab h4"),
                           text_of(command, "price"), is_given(command, "yes"), reporter);
        }}},
      {"cluster remove",
       {{"NODE", "force", "yes"},
        [](const auto& cluster, const auto& command, auto& reporter) {
          return remove_host(cluster, needed_text(command, "NODE", "dtrain cluster remove lab h4"),
                             is_given(command, "force"), reporter);
        }}},
      {"cluster down", {{"yes"}, [](const auto& cluster, const auto& command, auto& reporter) {
                          return take_down(cluster, is_given(command, "yes"), reporter);
                        }}}};
  return all;
}

// Why a verb means nothing on registered hosts, and what to do in its place; {} is the name of the cluster.
struct WhyNot {
  const char* why;
  const char* hint;
};

const std::map<std::string, WhyNot>& refused_verbs() {
  constexpr const char* kAddHosts = "dtrain cluster add {0} HOST adds a host";
  constexpr const char* kPower =
      "switch them on or off as you do otherwise; dtrain cluster status {0} shows which answer";
  static const std::map<std::string, WhyNot> all = {
      {"cluster plan", {"nothing is made for it: its machines are there already", kAddHosts}},
      {"cluster up", {"its machines are there already", kAddHosts}},
      {"cluster stop", {"dtrain never touches the power of its machines", kPower}},
      {"cluster start", {"dtrain never touches the power of its machines", kPower}},
      {"cluster watch",
       {"dtrain cannot start machines there to replace lost ones",
        "an elastic job takes a host back by itself once it answers; dtrain cluster health {0} checks all"}},
      {"cluster logs",
       {"its machines boot without dtrain", "dtrain tail-logs --cluster {0} shows the logs of its jobs"}},
      {"cluster env",
       {"it sets no variables on its machines",
        "give --cluster {0} to `dtrain train` or `dtrain launch`; the host file is `hosts` in the folder that dtrain "
        "cluster status {0} --json names"}},
      {"cluster iam-policy", {"it needs no rights in AWS", "leave the name out for the rights of clusters in AWS"}},
      {"cluster template", {"CloudFormation makes none of its machines", kAddHosts}}};
  return all;
}

void refuse_foreign_options(const RegisteredCluster& cluster, const Command& command, const HostsVerb& verb) {
  for (const config::Option& option : command.options.options()) {
    if (!option.given || option.name() == "NAME") continue;
    if (std::ranges::find(verb.options, option.name()) != verb.options.end()) continue;
    throw UsageError(
        fmt::format("{}: is for clusters in AWS, and {} is one of registered hosts", option.shown_name(), cluster.name),
        "leave it out");
  }
}

}  // namespace

std::optional<ExitCode> act_on_registered(const Command& command, bool only_shown, Reporter& reporter) {
  const config::Option* name = command.options.find("NAME");
  if (only_shown || !command.path.starts_with("cluster ") || command.path == "cluster register" || !name ||
      !name->given)
    return std::nullopt;
  const auto cluster = cluster::registered(*name->given);
  if (!cluster) return std::nullopt;
  if (const auto refused = refused_verbs().find(command.path); refused != refused_verbs().end()) {
    throw UsageError(fmt::format("{}: cluster {} is one of registered hosts, and {}", command.path, cluster->name,
                                 refused->second.why),
                     fmt::format(fmt::runtime(refused->second.hint), cluster->name));
  }
  const auto verb = verbs().find(command.path);
  if (verb == verbs().end()) return std::nullopt;
  refuse_foreign_options(*cluster, command, verb->second);
  return verb->second.act(*cluster, command, reporter);
}

}  // namespace dtrain::cli
