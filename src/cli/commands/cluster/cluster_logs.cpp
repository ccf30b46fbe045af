#include <fmt/format.h>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"

namespace dtrain::cli {
namespace {

constexpr const char* kBootLog = "/var/log/dtrain-node.log";
constexpr std::size_t kMostLog = 4 << 20;

struct LogsCommand {
  config::ClusterPlace place;
  std::string node = "head";
};

void bind(config::OptionSet& set, LogsCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options").add("NODE", options.node, "NODE",
                           "name or instance id of the node, as shown by `dtrain cluster status`");
}

std::string over_ssh(const cluster::Fleet& fleet, const cluster::Node& node) {
  const std::string user = cluster::ClusterHead(fleet, std::chrono::seconds(0)).session().user();
  return net::SshSession::connect(cluster::ssh_target(node, user), cluster::cluster_ssh_options(fleet.name))
      .read_file(kBootLog, kMostLog);
}

// EMR writes them every few minutes.
std::string emr_logs(const cluster::Fleet& fleet, const cluster::Node& node) {
  if (fleet.emr->log_uri.empty()) {
    throw UsageError(fmt::format("EMR cluster {} keeps no logs", fleet.emr->id),
                     "create the cluster with --log-uri s3://...");
  }
  const bool slash = fleet.emr->log_uri.ends_with('/');
  return fmt::format("{}{}{}/node/{}/", fleet.emr->log_uri, slash ? "" : "/", fleet.emr->id, node.instance_id);
}

enum class Output { latest, kept };

std::string console_output(net::AwsCalls& aws, const cluster::Node& node, Output output) {
  std::vector<net::HttpField> fields{{"InstanceId", node.instance_id}};
  if (output == Output::latest) fields.emplace_back("Latest", "true");
  return from_base64(aws.query(net::kEc2, "GetConsoleOutput", std::move(fields)).value("output"));
}

// The console output that EC2 keeps: the only log of a machine that accepts no ssh connection. EC2 reads the latest
// output of Nitro types alone; for all types it keeps what the machine printed until its last start or end.
std::string from_console(net::AwsCalls& aws, const cluster::Node& node) {
  std::string text;
  try {
    text = console_output(aws, node, Output::latest);
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::other) throw;
  }
  if (text.empty()) text = console_output(aws, node, Output::kept);
  if (!text.empty()) return text;
  throw RemoteError(fmt::format("EC2 has no console output of {} ({}) yet", node.name, node.instance_id),
                    "run the same command again in a few minutes");
}

// EC2 lists a machine for about an hour after its end. The result is the machine of that name or id that was started
// last; nullptr: EC2 lists none.
const cluster::Node* find_ended(const cluster::Fleet& fleet, const std::string& node) {
  const cluster::Node* latest = nullptr;
  for (const cluster::Node& one : fleet.ending) {
    if (one.name != node && one.instance_id != node) continue;
    if (!latest || latest->launch_time < one.launch_time) latest = &one;
  }
  return latest;
}

ExitCode act(const LogsCommand& options, const config::OptionSet&, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Node* node = fleet.find(options.node);
  if (const cluster::Node* ended = node || fleet.on_emr() ? nullptr : find_ended(fleet, options.node)) {
    reporter.note(fmt::format("{} ({}) has ended; its console output follows", ended->name, ended->instance_id));
    reporter.answer(trim(from_console(cloud.aws(), *ended)));
    return ExitCode::ok;
  }
  if (!node) {
    throw UsageError(
        fmt::format("cluster {} has no node {}", fleet.name, options.node),
        fmt::format("dtrain cluster status {} lists its nodes; EC2 forgets those that ended an hour ago", fleet.name));
  }
  if (fleet.on_emr()) {
    reporter.answer(emr_logs(fleet, *node));
    return ExitCode::ok;
  }
  try {
    reporter.answer(trim(over_ssh(fleet, *node)));
  } catch (const RemoteError& error) {
    reporter.warn(fmt::format("{}; its console output follows", error.what()));
    reporter.answer(trim(from_console(cloud.aws(), *node)));
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_logs() {
  auto command = make_command<LogsCommand>("cluster logs", "print the boot log of a node", act);
  command->examples = {"dtrain cluster logs demo", "dtrain cluster logs demo w0001"};
  command->see_also = {"cluster ssh", "cluster status", "tail-logs"};
  return command;
}

}  // namespace dtrain::cli
