#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/ssh_entries.hpp>
#include <dtrain/cluster/stack.hpp>

#include "cli/command.hpp"
#include "cli/commands/cluster/cluster_cloud.hpp"
#include "commands.hpp"

namespace dtrain::cli {
namespace {

struct AdoptCommand {
  config::ClusterPlace place;
  std::string stack, image;
  bool yes = false, dry_run = false, no_install = false;
};

void bind(config::OptionSet& set, AdoptCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  set.add("--stack", options.stack, "NAME", "the CloudFormation stack (default the name of the cluster)").flag_only =
      true;
  set.add("--ami", options.image, "AMI",
          "the image of further machines, where that of the stack's workers is gone (default theirs)")
      .flag_only = true;
  config::bind_yes(set, options.yes,
                   "change the stack's machines and Auto Scaling groups without asking for confirmation");
  set.add("--no-install", options.no_install,
          "do not install dtrain on the machines by ssh; the same command without this option does so later")
      .flag_only = true;
  set.add("--dry-run", options.dry_run, "show what would be changed").flag_only = true;
}

std::map<std::string, cluster::MachineType> types_in(net::AwsCalls& aws, const cluster::Stack& stack) {
  std::set<std::string> names;
  for (const cluster::StackMachine& one : stack.machines) names.insert(one.node.type);
  if (names.empty()) return {};
  return cluster::read_types(aws, {names.begin(), names.end()});
}

Json document(const AdoptCommand& options, const cluster::Stack& stack, const cluster::Adoption& adoption,
              const cluster::Fleet& fleet, const std::vector<std::string>& failures) {
  Json nodes = Json::array(), suspended = Json::object();
  for (const cluster::Node& node : fleet.nodes) nodes.push_back(node_json(node));
  for (const auto& [group, processes] : adoption.suspend) suspended[group] = processes;
  return Json::object({{"schema", "dtrain.cluster-adopt/1"},
                       {"cluster", options.place.name},
                       {"stack", stack.name},
                       {"head", adoption.head},
                       {"workers", adoption.workers.size()},
                       {"actions", json_texts(adoption.actions)},
                       {"suspended", suspended},
                       {"notes", json_texts(adoption.notes)},
                       {"changed", !options.dry_run},
                       {"nodes", nodes},
                       {"not_installed", json_texts(failures)}});
}

void show_plan(const AdoptCommand& options, const cluster::Stack& stack, const cluster::Adoption& adoption,
               Reporter& reporter) {
  reporter.answer(fmt::format("stack {} becomes cluster {}:", stack.name, options.place.name));
  for (const std::string& one : adoption.actions) reporter.answer("  " + one);
}

// Before the stack is changed: on such machines the installation would wait for a node that never comes.
void require_machines_for_dtrain(const cluster::ClusterRequest& request, const cluster::Stack& stack,
                                 const cluster::Adoption& adoption, Reporter& reporter) {
  const std::vector<std::string> lines = cluster::machines_without_dtrain(request, stack, adoption);
  if (lines.empty()) return;
  for (const std::string& line : lines) reporter.warn("dtrain cannot run on " + line);
  throw UsageError(fmt::format("stack {} has {} on which dtrain cannot run", stack.name,
                               lines.size() == 1 ? "a machine" : fmt::format("{} machines", lines.size())),
                   "mend that, or give --no-install: the cluster then has these machines without dtrain");
}

// Nodes register while this waits.
ExitCode install(const AdoptCommand& options, const cluster::Fleet& fleet, const cluster::ClusterRequest& request,
                 const cluster::Account& account, std::vector<std::string>& failures, Reporter& reporter) {
  failures = cluster::install_on_machines(fleet, request, account);
  for (const std::string& line : failures) reporter.warn("dtrain is not installed on " + line);
  if (!failures.empty()) {
    reporter.warn("mend that, and repeat the command: it goes on with what is left");
    return ExitCode::partly_done;
  }
  return cluster::settle_nodes(fleet, std::chrono::seconds(options.place.timeout_seconds), reporter);
}

ExitCode adopt(const AdoptCommand& options, Reporter& reporter) {
  cluster::check_cluster_name(options.place.name);
  ClusterCloud cloud(options.place, reporter, ClusterCloud::Scope::region);  // that of the stack
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Stack stack =
      cluster::read_stack(cloud.aws(), options.stack.empty() ? options.place.name : options.stack);
  cluster::Adoption adoption = cluster::plan_adoption(stack, fleet, types_in(cloud.aws(), stack));
  if (!options.image.empty()) adoption.spec.image = options.image;
  const cluster::ClusterRequest request = cluster_request(options.place.name, adoption.spec, {}, {});
  cluster::check_spec(request.spec);
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  cluster::check_request(request, account);
  if (!reporter.json()) show_plan(options, stack, adoption, reporter);
  for (const std::string& note : adoption.notes) reporter.warn(note);
  std::vector<std::string> failures;
  if (options.dry_run) {
    if (reporter.json()) reporter.answer_json(document(options, stack, adoption, {}, failures));
    return ExitCode::ok;
  }
  require_consent(options.yes,
                  fmt::format("adopt stack {} as cluster {}? `dtrain cluster down {}` gives it back", stack.name,
                              options.place.name, options.place.name),
                  reporter);
  if (!options.no_install) require_machines_for_dtrain(request, stack, adoption, reporter);
  const cluster::Fleet made = cluster::adopt_stack(cloud.context(false), request, account, stack, adoption);
  cluster::renew_ssh_entries(made, reporter);
  const ExitCode code =
      options.no_install ? ExitCode::ok : install(options, made, request, account, failures, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(options, stack, adoption, made, failures));
  } else {
    reporter.answer(
        fmt::format("cluster {} has a head and {}", made.name, count_text(made.workers().size(), "worker")));
  }
  return code;
}

ExitCode act(const AdoptCommand& options, const config::OptionSet&, Reporter& reporter) {
  return change_cluster(options.place,
                        fmt::format("run the same command again to continue, or dtrain cluster down {} to give the "
                                    "machines back",
                                    options.place.name),
                        [&] { return adopt(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_adopt() {
  auto command = make_command<AdoptCommand>(
      "cluster adopt", "make a cluster of a CloudFormation stack of the deep-learning templates", act);
  command->examples = {"dtrain cluster adopt demo --stack my-stack --dry-run",
                       "dtrain cluster adopt demo --stack my-stack"};
  command->see_also = {"cluster up", "cluster down", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
