#include <fmt/format.h>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "config/option_values.hpp"
#include "job/agent/waiting_host.hpp"
#include "job/spec/process_facts.hpp"

namespace dtrain::cli {
namespace {

struct LeaveCommand {
  job::JobFolder job{"."};
  std::string name = job::host_name();
  config::Seconds limit{100};
};

void bind(config::OptionSet& set, LeaveCommand& options) {
  set.group("Options")
      .add("--name", options.name, "NAME", "name of this host in the job (default the machine's name)")
      .by_machine = true;
  config::add_seconds(set, "--limit", options.limit, "longest wait until the worker has left, in seconds",
                      config::more_than(0));
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

ExitCode act(const LeaveCommand& options, const config::OptionSet&, Reporter& reporter) {
  job::leave_folder(options.job, options.name, options.limit);
  reporter.note(fmt::format("{} has left", options.name));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_hosts_leave() {
  auto command = make_command<LeaveCommand>(
      "hosts leave", "take this machine, where `dtrain hosts join` runs, out of its job at the next step", act);
  command->examples = {"dtrain hosts leave --job-dir /efs/job"};
  command->see_also = {"hosts join", "hosts drain", "hosts remove"};
  return command;
}

}  // namespace dtrain::cli
