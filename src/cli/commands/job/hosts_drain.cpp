#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

#include "cli/command.hpp"
#include "cli/commands/job/host_words.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

struct DrainCommand {
  job::JobFolder job{"."};
  std::string hosts;
  std::string reason = "requested by the user";
  bool yes = false;
};

void bind(config::OptionSet& set, DrainCommand& options) {
  config::Option& hosts = set.group("Options").add("HOST", options.hosts, "HOST", "hosts to drain at the next step");
  hosts.required = true;
  hosts.many = true;
  hosts.offers = config::Offers::hosts;
  set.add("--reason", options.reason, "TEXT", "reason shown in the list of hosts and in the events");
  set.add("--yes", options.yes, "allow draining so many hosts that fewer than --min-workers workers stay").flag_only =
      true;
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

ExitCode act(const DrainCommand& options, const config::OptionSet&, Reporter& reporter) {
  const std::vector<std::string> names = host_names(options.hosts);
  Json request = Json::object({{"ask", "drain"}, {"reason", options.reason}, {"any_number", options.yes}});
  if (names.size() == 1) {
    request["host"] = names.front();  // coordinators of before know this alone
  } else {
    request["hosts"] = json_texts(names);
  }
  job::ask_coordinator(options.job, request);
  if (!reporter.json()) {
    for (const std::string& host : names)
      reporter.note(fmt::format("{} leaves at the next step; its line stays in {}. `{}` takes it back", host,
                                options.job.hosts().string(),
                                options.job.command("hosts add " + net::shell_quoted(host))));
  } else {
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
  command->see_also = {"hosts list", "hosts add", "hosts remove"};
  return command;
}

}  // namespace dtrain::cli
