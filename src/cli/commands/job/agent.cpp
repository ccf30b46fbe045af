// `dtrain agent`: which of its programs this process is. They stand in agent_roles.hpp.
#include "agent_roles.hpp"
#include "cli/command.hpp"

namespace dtrain::cli {
namespace {

struct AgentCommand {
  AgentStart start;
  bool worker = false, check = false, coordinator = false, ask = false, registered = false, stop = false;
  std::optional<Path> submitted, head, node, jobs, heal, guard;
  std::string jobs_of;
};

// What a switch makes of the process.
struct SwitchRole {
  bool AgentCommand::*option;
  ExitCode (*run)(Reporter&);
};
constexpr SwitchRole kSwitchRoles[] = {
    {&AgentCommand::worker, run_worker_process},        {&AgentCommand::check, run_host_check},
    {&AgentCommand::coordinator, run_next_coordinator}, {&AgentCommand::ask, ask_head_of_machine},
    {&AgentCommand::registered, answer_as_registered},  {&AgentCommand::stop, stop_job_in_folder},
};

// What an option with a file makes of the process.
struct FileRole {
  std::optional<Path> AgentCommand::*option;
  ExitCode (*run)(const Path& file, Reporter&);
};
constexpr FileRole kFileRoles[] = {
    {&AgentCommand::submitted, run_submitted_command},
    {&AgentCommand::head, run_cluster_head},
    {&AgentCommand::node, run_cluster_node},
    {&AgentCommand::jobs, run_cluster_queue},
    {&AgentCommand::heal, keep_cluster},
    {&AgentCommand::guard, guard_cluster},
};

void bind(config::OptionSet& set, AgentCommand& options) {
  set.group("Options")
      .add("--worker", options.worker, "run as a worker of the agent that started this process")
      .flag_only = true;
  set.add("--check", options.check, "check whether this host meets the needs of the job on standard input").flag_only =
      true;
  set.add("--coordinator", options.coordinator, "take over from the coordinator that the agents lost").flag_only = true;
  set.add("--apart", options.start.apart,
          "return once the agent has joined the job, and keep it running in the background")
      .flag_only = true;
  set.add("--join", options.start.join, "read the job to join from this file, and remove the file").flag_only = true;
  set.add("--head", options.head, "run as the head of the cluster described in this file").flag_only = true;
  set.add("--node", options.node, "register this machine with the head of the cluster described in this file")
      .flag_only = true;
  set.add("--jobs", options.jobs, "run the queue of jobs of the cluster described in this file, as its login user")
      .flag_only = true;
  set.add("--heal", options.heal, "keep the cluster described in this file as it is wanted, as its login user")
      .flag_only = true;
  set.add("--guard", options.guard,
          "start the head of the cluster described in this file again when EC2 has ended it, as its login user")
      .flag_only = true;
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

ExitCode act(const AgentCommand& options, const config::OptionSet&, Reporter& reporter) {
  for (const SwitchRole& role : kSwitchRoles) {
    if (options.*role.option) return role.run(reporter);
  }
  for (const FileRole& role : kFileRoles) {
    if (const std::optional<Path>& file = options.*role.option) return role.run(*file, reporter);
  }
  if (!options.jobs_of.empty()) return run_queue_of_registered(options.jobs_of, reporter);
  return run_host_agent(options.start, reporter);
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
