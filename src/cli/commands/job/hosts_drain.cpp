#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

struct DrainCommand {
  job::JobFolder job{"."};
  std::string hosts;
  std::string reason = "requested by the user";
};

void bind(config::OptionSet& set, DrainCommand& options) {
  config::Option& hosts = set.group("Options").add("HOST", options.hosts, "HOST", "hosts to drain at the next step");
  hosts.required = true;
  hosts.many = true;
  hosts.offers = config::Offers::hosts;
  set.add("--reason", options.reason, "TEXT", "reason shown in the list of hosts and in the events");
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

ExitCode act(const DrainCommand& options, const config::OptionSet&, Reporter& reporter) {
  const std::vector<std::string> names = split(options.hosts, ' ');
  for (const std::string& host : names) {
    job::ask_coordinator(options.job, Json::object({{"ask", "drain"}, {"host", host}, {"reason", options.reason}}));
    if (reporter.json()) continue;
    reporter.note(fmt::format("{} leaves at the next step; its line stays in {}", host, options.job.hosts().string()));
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.hosts-drain/1"}, {"drained", json_texts(names)}, {"file", options.job.hosts().string()}}));
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_hosts_drain() {
  auto command = make_command<DrainCommand>(
      "hosts drain", "take hosts out of an elastic job at the next step, but keep their lines in host_worker", act);
  command->examples = {"dtrain hosts drain w2 --job-dir job",
                       "dtrain hosts drain w2 --reason \"new disk\" --job-dir job"};
  command->see_also = {"hosts list", "hosts remove"};
  return command;
}

}  // namespace dtrain::cli
