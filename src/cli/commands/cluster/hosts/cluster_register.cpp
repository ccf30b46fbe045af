#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>

#include "admission.hpp"
#include "cli/commands/cluster/keep/cluster_budget.hpp"
#include "commands.hpp"
#include "host_words.hpp"
#include "job/spec/host_list.hpp"
#include "registered_ssh.hpp"
#include "site.hpp"

namespace dtrain::cli {
namespace {

using cluster::RegisteredCluster;
using cluster::RegisteredHost;
constexpr std::chrono::seconds kToAskAws{20};

struct RegisterCommand {
  std::string name;
  std::optional<Path> hosts;
  std::string head, shared;
  HostPrices prices;
  double budget = 0;
  bool at_boot = false, yes = false;
};

void bind(config::OptionSet& set, RegisterCommand& options) {
  set.group("Cluster");
  set.add("NAME", options.name, "NAME", "name of the cluster").required = true;
  config::Option& hosts = set.add("-H,--hosts", options.hosts,
                                  "host file of the cluster's machines, one a line: name, or user@host:port, each "
                                  "optionally with slots=n");
  hosts.required = hosts.flag_only = true;
  set.add("--head", options.head, "HOST",
          "host that keeps the queue of jobs, named as in the file (default its first host)")
      .flag_only = true;
  set.add("--shared", options.shared, "FOLDER",
          "folder that all hosts mount at this path; commands run in it, and the queue is below it (default the home "
          "folder of the login on the head)")
      .flag_only = true;
  set.add("--at-boot", options.at_boot,
          "let the head start the queue when it boots, by a line in the crontab of your login there, which `cluster "
          "down` removes; without it the first command about the cluster starts the queue")
      .flag_only = true;
  set.group("Limits and bills");
  bind_prices(set, options.prices,
              "price of an hour in US dollars, of each host or of the named one; it counts from now on until the host "
              "is removed. May be repeated (default unknown)");
  bind_budget(set, options.budget,
              "US dollars that the hosts may cost in all; when they are spent, the job that runs is stopped with a "
              "checkpoint and no other is started. The machines stay on (default no limit)");
  set.group("Options");
  config::bind_yes(set, options.yes,
                   "let dtrain add a key of the cluster to ~/.ssh/authorized_keys of the hosts, where the head cannot "
                   "log in to them, without asking for confirmation");
}

void put_head_first(RegisteredCluster& cluster, const std::string& head) {
  if (head.empty()) return;
  const auto found = std::ranges::find(cluster.hosts, head, &RegisteredHost::name);
  if (found == cluster.hosts.end()) {
    throw UsageError(fmt::format("--head {}: there is no such host in the host file", head),
                     "name it as the file does");
  }
  std::rotate(cluster.hosts.begin(), found, found + 1);
}

RegisteredCluster cluster_of(const RegisterCommand& options, const config::OptionSet& set) {
  cluster::check_cluster_name(options.name);
  RegisteredCluster asked{.name = options.name, .hosts = hosts_of(job::read_host_file(*options.hosts))};
  give_prices(options.prices, asked.hosts);
  put_head_first(asked, options.head);
  if (set.chosen(kBudget)) asked.budget = options.budget;
  asked.shared = options.shared;
  const auto known = cluster::registered(options.name);
  if (asked.shared.empty() && known) asked.shared = known->shared;
  return asked;
}

// Without keys there is nothing to ask, and no answer is worth a wait.
bool has_keys_of_aws() {
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
    if (environment(name)) return true;
  }
  const Path folder = Path(environment("HOME").value_or("/")) / ".aws";
  return is_listed(folder / "credentials") || is_listed(folder / "config");
}

void refuse_name_of_aws(const std::string& name, Reporter& reporter) {
  if (cluster::registered(name) || !has_keys_of_aws()) return;
  try {
    net::AwsCalls aws({}, {.attempts = 2, .until = std::chrono::steady_clock::now() + kToAskAws});
    if (!cluster::read_fleet(aws, name).exists()) return;
    throw UsageError(fmt::format("there is a cluster {} in {} of your AWS account", name, aws.region()),
                     "choose another name: commands find a cluster by its name");
  } catch (const RemoteError& error) {
    reporter.warn(fmt::format("whether your AWS account has a cluster {} is unknown: {}", name, error.what()));
  }
}

Json document(const RegisteredCluster& cluster, bool is_new) {
  Json hosts = Json::array();
  for (const RegisteredHost& host : cluster.hosts) hosts.push_back(host.name);
  return Json::object({{"schema", "dtrain.cluster-register/1"},
                       {"cluster", cluster.name},
                       {"new", is_new},
                       {"head", cluster.head().name},
                       {"shared", cluster.shared},
                       {"queue", cluster.folder},
                       {"own_key", cluster.own_key},
                       {"hosts", hosts}});
}

void answer(const RegisteredCluster& cluster, bool is_new, Reporter& reporter) {
  if (reporter.json()) return reporter.answer_json(document(cluster, is_new));
  reporter.answer(fmt::format("cluster {} {} {}, {} is the head; {} an hour", cluster.name,
                              is_new ? "has" : "was registered already, with", count_text(cluster.hosts.size(), "host"),
                              cluster.head().name, cost_text(cluster::hourly_cost(cluster))));
  reporter.answer(fmt::format("  dtrain train --cluster {} ...   in {}", cluster.name, cluster.shared));
  reporter.answer(fmt::format("  dtrain cluster status {}", cluster.name));
}

Json claim(Site& site, Admission& admission, const std::vector<RegisteredHost>& hosts, bool at_boot) {
  const RegisteredCluster& wanted = admission.cluster();
  try {
    return site.ask_head(wanted.head(),
                         Json::object({{"ask", "claim"}, {"cluster", to_json(wanted)}, {"at_boot", at_boot}}));
  } catch (const Error&) {
    admission.dismiss(hosts);
    throw;
  }
}

ExitCode act(const RegisterCommand& options, const config::OptionSet& set, Reporter& reporter) {
  const RegisteredCluster asked = cluster_of(options, set);
  refuse_hosts_of_others(asked.name, asked.hosts);
  refuse_name_of_aws(asked.name, reporter);
  Site site(asked.name, reporter);
  Admission admission(site, asked, options.yes, reporter);
  admission.place();
  admission.admit(asked.hosts);
  const Json answered = claim(site, admission, asked.hosts, options.at_boot);
  const auto cluster = cluster::registered_cluster_from(answered.at("cluster"), "the answer of the head");
  cluster::remember(cluster);
  renew_ssh_names(cluster, reporter);
  answer(cluster, answered.at("is_new").as_bool(), reporter);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_register() {
  auto command = make_command<RegisterCommand>("cluster register",
                                               "make a cluster of existing machines: any hosts that answer ssh", act);
  command->examples = {"dtrain cluster register lab --hosts hosts --shared /nfs/lab",
                       "dtrain cluster register lab --hosts hosts --head h2 --price 0.35 --price h1=2.10 --budget 50"};
  command->see_also = {"cluster status", "cluster add", "cluster down", "train", "jobs list"};
  return command;
}

}  // namespace dtrain::cli
