#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"

namespace dtrain::cli {
namespace {

struct DownCommand {
  config::ClusterPlace place;
  bool yes = false, delete_storage = false;
};

void bind(config::OptionSet& set, DownCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  config::bind_yes(set, options.yes, "end the machines without asking for confirmation");
  set.add("--delete-storage", options.delete_storage,
          "also delete the file system that `up` created, with all its content")
      .flag_only = true;
}

Json document(const std::string& name, const cluster::DownResult& result) {
  Json removed = Json::array(), kept = Json::array(), leftover = Json::array();
  for (const std::string& id : result.removed) removed.push_back(id);
  for (const cluster::Kept& one : result.kept) {
    kept.push_back(Json::object({{"file_system", one.file_system}, {"dollars_per_month", one.monthly}}));
  }
  for (const cluster::Leftover& one : result.leftover) {
    leftover.push_back(Json::object({{"kind", one.kind}, {"id", one.id}, {"why", one.why}}));
  }
  return Json::object({{"schema", "dtrain.cluster-down/1"},
                       {"cluster", name},
                       {"instances", result.instances},
                       {"removed", removed},
                       {"kept", kept},
                       {"leftover", leftover}});
}

void answer(const std::string& name, const cluster::DownResult& result, Reporter& reporter) {
  for (const cluster::Kept& one : result.kept) {
    reporter.answer(fmt::format("kept: file system {}, ${:.2f} a month; --delete-storage removes it", one.file_system,
                                one.monthly));
  }
  for (const cluster::Leftover& one : result.leftover) {
    reporter.answer(fmt::format("left: {} {}: {}", one.kind, one.id, one.why));
  }
  if (result.leftover.empty()) reporter.answer(fmt::format("cluster {} is gone", name));
}

std::string machines_text(const cluster::Fleet& fleet) {
  std::vector<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    if (node.named()) {
      names.push_back(fmt::format("{} ({})", node.name, node.instance_id));
    } else {
      const bool by_hand = node.launch.empty() && !node.elastic && !fleet.emr;
      names.push_back(node.instance_id + (by_hand ? " (tagged by hand)" : ""));
    }
  }
  if (names.empty()) return "no machines";
  return fmt::format("{} machine{}: {}", names.size(), names.size() == 1 ? "" : "s", join(names, ", "));
}

std::string storage_text(const DownCommand& options, net::AwsCalls& aws) {
  std::vector<std::string> systems;
  try {
    for (const cluster::FileSystem& system : cluster::own_file_systems(aws, options.place.name)) {
      systems.push_back(fmt::format("{}, ${:.2f} a month", system.id, cluster::monthly_price(system)));
    }
  } catch (const RemoteError&) {
    return "; its file systems cannot be read";
  }
  if (systems.empty()) return {};
  return options.delete_storage ? fmt::format("; DELETE file system {} with all its content", join(systems, " and "))
                                : fmt::format("; keep file system {}", join(systems, " and "));
}

std::string question(const DownCommand& options, net::AwsCalls& aws) {
  return fmt::format("cluster {}: end {}; delete its resources{}?", options.place.name,
                     machines_text(cluster::read_fleet(aws, options.place.name)), storage_text(options, aws));
}

ExitCode end(const DownCommand& options, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  if (!options.yes) require_consent(false, question(options, cloud.aws()), reporter);
  const cluster::DownResult result =
      cluster::bring_down(cloud.context(true), {.name = options.place.name}, options.delete_storage);
  cluster::remove_ssh_entries(options.place.name, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(options.place.name, result));
  } else {
    answer(options.place.name, result, reporter);
  }
  return result.leftover.empty() ? ExitCode::ok : ExitCode::partly_done;
}

ExitCode act(const DownCommand& options, const config::OptionSet&, Reporter& reporter) {
  return change_cluster(options.place, [&] { return end(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_down() {
  auto command =
      make_command<DownCommand>("cluster down", "end a cluster, and check that none of its resources is left", act);
  command->examples = {"dtrain cluster down demo", "dtrain cluster down demo --delete-storage --yes"};
  command->see_also = {"cluster up", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
