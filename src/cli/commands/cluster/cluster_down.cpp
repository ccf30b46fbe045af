#include <fmt/format.h>

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

ExitCode end(const DownCommand& options, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  require_consent(options.yes,
                  fmt::format("cluster {}: end all its machines and delete its resources?", options.place.name),
                  reporter);
  const cluster::DownResult result =
      cluster::bring_down(cloud.context(true), options.place.name, options.delete_storage);
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
