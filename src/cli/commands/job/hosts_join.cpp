#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "config/option_values.hpp"
#include "job/agent/waiting_host.hpp"
#include "job/spec/process_facts.hpp"

namespace dtrain::cli {
namespace {

struct JoinCommand {
  job::JobFolder job{"."};
  std::string name = job::host_name();
  job::HostProbe probe = job::HostProbe::none;
};

void bind(config::OptionSet& set, JoinCommand& options) {
  set.group("Options")
      .add("--name", options.name, "NAME", "name of this host in the job (default the machine's name)")
      .by_machine = true;
  config::add_choice(set, "--probe", options.probe, job::kHostProbeNames,
                     "do not wait, but report by the exit code the state of the `hosts join` process of this name. "
                     "alive: it answers. ready: it answers, and its agent runs in a job");
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

ExitCode act(const JoinCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.probe == job::HostProbe::none) return job::wait_in_folder(options.job, options.name, reporter);
  job::probe_host(options.job, options.name, options.probe);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_hosts_join() {
  auto command = make_command<JoinCommand>(
      "hosts join", "offer this machine to the jobs of a folder, until SIGTERM; for --launcher folder", act);
  command->examples = {"dtrain hosts join --job-dir /efs/job", "dtrain hosts join --probe ready --job-dir /efs/job"};
  command->see_also = {"hosts leave", "hosts list", "train"};
  return command;
}

}  // namespace dtrain::cli
