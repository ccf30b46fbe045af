#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <iterator>

#include <dtrain/base/error.hpp>
#include <dtrain/base/error_json.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stack_dump.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/head.hpp>
#include <dtrain/cluster/head_guard.hpp>
#include <dtrain/cluster/member.hpp>
#include <dtrain/cluster/node.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/agent_registry.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "job/agent/detached_agent.hpp"
#include "job/agent/host_check.hpp"
#include "job/agent/supervised_agent.hpp"
#include "job/coordinator/job.hpp"
#include "job/coordinator/resubmit.hpp"
#include "job/queue/cluster_tag_sync.hpp"
#include "job/queue/job_queue.hpp"
#include "job/queue/queue_runner.hpp"
#include "job/registered/head.hpp"
#include "job/spec/job_folder.hpp"
#include "job/worker/worker.hpp"

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kAskDeadline{30};

struct AgentCommand {
  bool worker = false, check = false, apart = false, coordinator = false;
  std::optional<Path> join, submitted, head, node, jobs, heal, guard;
  std::string jobs_of;
  bool ask = false, registered = false, stop = false;
};

void bind(config::OptionSet& set, AgentCommand& options) {
  set.group("Options")
      .add("--worker", options.worker, "run as a worker of the agent that started this process")
      .flag_only = true;
  set.add("--check", options.check, "check whether this host meets the needs of the job on standard input").flag_only =
      true;
  set.add("--coordinator", options.coordinator, "take over from the coordinator that the agents lost").flag_only = true;
  set.add("--apart", options.apart, "return once the agent has joined the job, and keep it running in the background")
      .flag_only = true;
  set.add("--join", options.join, "read the job to join from this file, and remove the file").flag_only = true;
  set.add("--head", options.head, "run as the head of the cluster described in this file").not_from_project = true;
  set.add("--node", options.node, "register this machine with the head of the cluster described in this file")
      .not_from_project = true;
  set.add("--jobs", options.jobs, "run the queue of jobs of the cluster described in this file, as its login user")
      .not_from_project = true;
  set.add("--heal", options.heal, "keep the cluster described in this file as it is wanted, as its login user")
      .not_from_project = true;
  set.add("--guard", options.guard,
          "start the head of the cluster described in this file again when EC2 has ended it, as its login user")
      .not_from_project = true;
  set.add("--ask", options.ask, "send the request on standard input to the head of this machine's cluster").flag_only =
      true;
  set.add("--registered", options.registered,
          "answer the question on standard input, as the head or another host of a registered cluster")
      .flag_only = true;
  set.add("--stop", options.stop,
          "stop the job in the folder on standard input with a checkpoint, for the reason that stands there")
      .flag_only = true;
  set.add("--jobs-of", options.jobs_of, "NAME", "run the queue of the registered cluster that this machine heads")
      .flag_only = true;
  set.add("--submitted", options.submitted, "run the command in this file, and remove the file").flag_only = true;
}

// The token comes through a pipe, so no other process can read it.
Json document_from_input() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (text.empty()) {
    throw UsageError(
        "agent: the job to join is missing",
        "`dtrain train` and `dtrain launch` start agents themselves; there is no need to run this command");
  }
  return Json::parse(text, "standard input");
}

// Keeps the token secret as the pipe does: the file is in the job folder, and only its owner may read it.
Json document_from_file(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    throw RemoteError(fmt::format("{} does not exist", file.string()),
                      "all hosts of a job need its folder: mount it on this host, or choose another --job-dir");
  }
  const std::string text = read_file(file);
  std::filesystem::remove(file, error);
  return Json::parse(text, file.string());
}

std::vector<std::string> own_command_with(const std::string& option) {
  std::vector<std::string> command = own_command();
  command.insert(command.end(), {"agent", option});
  return command;
}

void require_job_folder(const elastic::AgentOrder& join) {
  std::error_code error;
  if (std::filesystem::is_directory(join.job_folder, error)) return;
  throw RemoteError(fmt::format("{}: the job folder {} does not exist", join.host, join.job_folder),
                    "all hosts of a job need its folder: mount it on this host, or choose another --job-dir");
}

elastic::AgentOptions::FolderNews look_into(const job::JobFolder& folder) {
  if (!is_listed(folder.coordinator())) return {};
  const auto file = job::read_coordinator(folder);
  if (!file) return {};
  if (file->over() || file->addresses.empty()) return {.leader = {}, .job_over = file->over()};
  return {.leader = elastic::Leader{file->term, {file->addresses.front(), file->port}}, .job_over = false};
}

// A coordinator that was replaced, and does not know it yet, must not win agents where the new one is known.
void refuse_old_coordinator(const elastic::AgentOrder& join) {
  std::optional<elastic::Leader> leader;
  try {
    leader = look_into(job::JobFolder{join.job_folder}).leader;
  } catch (const DataError&) {  // damaged: it leads to no coordinator
  }
  if (!leader || leader->term <= join.term) return;
  throw RemoteError(
      fmt::format("{}: the job now belongs to coordinator {}, not {}", join.host, leader->term, join.term));
}

ExitCode serve_cluster(const AgentCommand& options, Reporter& reporter) {
  const auto note = [&reporter](const std::string& line) { reporter.note(line); };
  const Path file = options.head ? *options.head : *options.node;
  const cluster::NodeOrder order = cluster::read_node_order(file);
  const Path folder = std::filesystem::absolute(file).parent_path();
  if (options.head) cluster::run_head({.order = order, .folder = folder, .on_note = note});
  if (options.node) cluster::run_node({.order = order, .folder = folder, .on_note = note});
  return ExitCode::ok;
}

// On the head, beside the process that nodes register with, which may still be starting.
ExitCode serve_queue(const Path& file, Reporter& reporter) {
  const cluster::NodeOrder order = cluster::read_node_order(file);
  cluster::become_login_user(order.login);
  job::run_queue({.queue = job::queue_of_cluster(order.shared_folder, order.cluster),
                  .cluster = order.cluster,
                  .on_note = [&reporter](const std::string& line) { reporter.note(line); }});
  return ExitCode::ok;
}

// The head's role is the keys of it. What it does is `cluster watch --heal`, in a process that replaces this one.
ExitCode keep_cluster(const Path& file) {
  const cluster::NodeOrder order = cluster::read_node_order(file);
  std::vector<std::string> command = own_command();
  const Path program = std::filesystem::canonical(command.front());  // a process that changes its user cannot ask this
  if (command.size() == 1) command.front() = "dtrain";
  command.insert(command.end(), {"cluster", "watch", order.cluster, "--heal", "--region", order.region});
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  cluster::become_login_user(order.login);
  ::execv(program.c_str(), words.data());
  throw Error(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

// On a worker, whose role is the keys of it.
ExitCode guard_cluster(const Path& file, Reporter& reporter) {
  const cluster::NodeOrder order = cluster::read_node_order(file);
  cluster::become_login_user(order.login);
  cluster::guard_head({.order = order, .on_note = [&reporter](const std::string& line) { reporter.note(line); }});
  return ExitCode::ok;
}

ExitCode ask_head(Reporter& reporter) {
  const auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile);
  if (!registry) throw UsageError("agent --ask: this machine is not a node of a cluster");
  reporter.answer_json(launcher::ask_registry(*registry, document_from_input(), kAskDeadline));
  return ExitCode::ok;
}

// The reason is not that of `dtrain stop`, which ends a job of the queue for good.
ExitCode stop_job() {
  const Json order = document_from_input();
  const job::JobFolder folder{order.at("job_dir").as_string()};
  job::stop_job_in(folder, order.at("why").as_string());  // who asks reads how it ended in the folder
  return ExitCode::ok;
}

// An error is an answer: the machine that asks shows it to its user.
ExitCode answer_registered(Reporter& reporter) {
  const Json question = document_from_input();
  try {
    auto answer = cluster::answer_as_member(question);
    if (!answer) answer = job::answer_as_head(question, reporter);
    if (!answer) throw UsageError("it does not know this question", "use the same version of dtrain on all machines");
    reporter.answer_json(*answer);
  } catch (const Error& error) {
    reporter.answer_json(Json::object({{"error", error_to_json(error)}}));
  }
  return ExitCode::ok;
}

ExitCode act(const AgentCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.worker) {
    Console worker_reporter{ReportOptions{}};
    return job::run_worker(worker_reporter);
  }
  if (options.check) return job::check_host(document_from_input(), reporter);
  if (options.coordinator) return job::take_over(elastic::coordinator_order_from_json(document_from_input()), reporter);
  if (options.submitted) job::run_submitted(*options.submitted);
  if (options.head || options.node) return serve_cluster(options, reporter);
  if (options.jobs) return serve_queue(*options.jobs, reporter);
  if (options.heal) return keep_cluster(*options.heal);
  if (options.guard) return guard_cluster(*options.guard, reporter);
  if (options.ask) return ask_head(reporter);
  if (options.stop) return stop_job();
  if (options.registered) return answer_registered(reporter);
  if (!options.jobs_of.empty()) {
    job::run_registered_queue(options.jobs_of, [&reporter](const std::string& line) { reporter.note(line); });
    return ExitCode::ok;
  }
  const elastic::AgentOrder join =
      elastic::agent_order_from_json(options.join ? document_from_file(*options.join) : document_from_input());
  require_job_folder(join);
  refuse_old_coordinator(join);
  const job::JobFolder folder{join.job_folder};
  std::optional<job::FileLock> lock;  // an agent of this machine's launcher
  if (!options.apart && !options.join) lock = job::FileLock::share(folder.agents_lock());
  job::DetachedAgent apart;
  if (options.apart)
    apart = job::detach_agent(elastic::tree_mark(join), elastic::coordinator_mark(join), elastic::agent_log(join));
  if (apart.outcome) return *apart.outcome;
  if (options.join) {
    if (const auto outcome = job::supervise_agent(elastic::tree_mark(join), elastic::coordinator_mark(join)))
      return *outcome;
    for (const std::string& name : launcher::variables_of_starters(own_environment())) ::unsetenv(name.c_str());
  }
  watch_stop_signals();
  elastic::run_agent({.order = join,
                      .worker_command = own_command_with("--worker"),
                      .check_command = own_command_with("--check"),
                      .coordinator_command = own_command_with("--coordinator"),
                      .look_into_folder = [folder] { return look_into(folder); },
                      .on_note = [&reporter](const std::string& line) { reporter.note(line); },
                      .on_joined = apart.report_joined});
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_agent() {
  auto command = make_command<AgentCommand>(
      "agent", "run the agent of a host; dtrain starts it itself, once on every host of a job", act);
  command->examples = {"dtrain agent"};
  command->see_also = {"train", "hosts list"};
  return command;
}

}  // namespace dtrain::cli
