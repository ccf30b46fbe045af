#include "cluster_emr_env.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/compat_files.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/launcher/host_endings.hpp>
#include <dtrain/launcher/sync.hpp>
#include <dtrain/net/addresses.hpp>

#include "job/report/stop_tokens.hpp"

namespace dtrain::cli {
namespace {

using Instances = std::vector<cluster::EmrInstance>;

Path local_path(const std::string& file) {
  if (!file.starts_with("~/")) return std::filesystem::absolute(file);
  return Path(environment("HOME").value_or("/")) / file.substr(2);
}

int gpus_of(net::AwsCalls& aws, const Instances& instances) {
  std::set<std::string> types;
  for (const cluster::EmrInstance& one : instances) types.insert(one.type);
  int gpus = 0;
  for (const auto& [name, type] : cluster::read_types(aws, {types.begin(), types.end()})) {
    gpus = std::max(gpus, type.gpus);
  }
  return gpus;
}

bool is_here(const cluster::EmrInstance& instance, const std::vector<std::string>& own) {
  return std::ranges::find(own, instance.private_ip) != own.end();
}

// All but this machine. Nodes let each other in by their private addresses, the world at most by public ones.
std::vector<net::SshTarget> others(const Instances& instances, const std::string& login) {
  const std::vector<std::string> own = net::own_addresses();
  const bool inside = std::ranges::any_of(instances, [&](const auto& one) { return is_here(one, own); });
  std::vector<net::SshTarget> targets;
  for (const cluster::EmrInstance& one : instances) {
    if (is_here(one, own)) continue;
    targets.push_back({.host = inside || one.public_ip.empty() ? one.private_ip : one.public_ip, .user = login});
  }
  return targets;
}

ExitCode copy_to(const std::vector<net::SshTarget>& targets, const EmrAdoption& adoption, const Path& file,
                 Reporter& reporter) {
  const job::StopWatch watch;
  launcher::FanOutOptions options{.ssh = cluster::cluster_ssh_options(adoption.id)};
  options.ssh.stop = watch.token();
  const launcher::SyncTree tree = launcher::read_tree(file, {});
  const std::string there = adoption.workers_file.starts_with("~/") ? adoption.workers_file : file.string();
  std::vector<launcher::HostEnding> endings(targets.size(), launcher::HostEnding::stopped);
  launcher::fan_out(
      targets, options, [&](std::size_t, net::SshSession& session) { launcher::sync_tree(tree, session, there); },
      [&](std::size_t host, const std::optional<launcher::HostFailure>& failure, auto) {
        endings[host] = launcher::ending_of(failure);
        if (!failure || endings[host] == launcher::HostEnding::stopped) return;
        reporter.warn(failure->what);
        if (!failure->hint.empty()) reporter.note("hint: " + failure->hint);
      });
  if (stop_signal() != 0)
    throw Interrupted(stop_signal(), launcher::stopped_text(endings), "every file there is complete");
  std::vector<std::string> names;
  for (const net::SshTarget& target : targets) names.push_back(target.host);
  return launcher::sum_up(names, endings, reporter);
}

}  // namespace

void bind(config::OptionSet& set, EmrAdoption& adoption) {
  set.group("Amazon EMR");
  set.add("--emr", adoption.id, "ID",
          "id (j-...) of an EMR cluster, given instead of NAME; the addresses of its instances are written to a file");
  set.add("--workers-file", adoption.workers_file, "PATH", "file for these addresses");
  set.add("--everywhere", adoption.everywhere, "copy the file to all instances over ssh").flag_only = true;
  set.add("--login", adoption.login, "USER", "user name on the instances").not_from_project = true;
}

AdoptedEmr adopt_emr(net::AwsCalls& aws, const EmrAdoption& adoption, Reporter& reporter) {
  const Instances instances = cluster::running_emr_instances(aws, adoption.id);
  const Path file = local_path(adoption.workers_file);
  cluster::ClusterFacts facts{.cluster = adoption.id, .region = aws.region()};
  std::string lines;
  for (const cluster::EmrInstance& one : instances) {
    facts.workers.push_back(one.private_ip);
    lines += one.private_ip + "\n";
  }
  facts.gpus = gpus_of(aws, instances);
  facts.workers_path = file.string();
  write_file_atomic(file, lines);
  reporter.note(fmt::format("{}: {}", file.string(), count_text(instances.size(), "worker")));
  AdoptedEmr adopted{.variables = cluster::cluster_variables(facts)};
  const std::vector<net::SshTarget> targets = others(instances, adoption.login);
  if (adoption.everywhere && !targets.empty()) adopted.code = copy_to(targets, adoption, file, reporter);
  return adopted;
}

}  // namespace dtrain::cli
