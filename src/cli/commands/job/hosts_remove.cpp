#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "cli/commands/job/host_words.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

struct RemoveCommand {
  job::JobFolder job{"."};
  std::string hosts;
  bool yes = false, allow_mass_remove = false;
};

void bind(config::OptionSet& set, RemoveCommand& options) {
  config::Option& hosts =
      set.group("Options").add("HOST", options.hosts, "HOST", "hosts to remove, named as in host_worker");
  hosts.required = true;
  hosts.many = true;
  hosts.offers = config::Offers::hosts;
  set.add("--yes", options.yes,
          "allow removing more than half of the hosts, or so many that fewer than --min-workers workers stay")
      .flag_only = true;
  set.add("--allow-mass-remove", options.allow_mass_remove, "same as --yes").flag_only = true;
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

ExitCode act(const RemoveCommand& options, const config::OptionSet&, Reporter& reporter) {
  const std::vector<std::string> names = host_names(options.hosts);
  const bool any_number = options.yes || options.allow_mass_remove;
  const job::HostEdit edit{.remove = names, .any_number = any_number, .keep_enough = !any_number};
  job::warn_of_host_file(options.job, job::edit_hosts(options.job, edit), reporter);
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.hosts-remove/1"}, {"removed", json_texts(names)}, {"file", options.job.hosts().string()}}));
    return ExitCode::ok;
  }
  reporter.note(fmt::format("Removed {} from {}", join(names, ", "), options.job.hosts().string()));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_hosts_remove() {
  auto command = make_command<RemoveCommand>("hosts remove", "remove hosts from a running job", act);
  command->examples = {"dtrain hosts remove w1 --job-dir job"};
  command->see_also = {"hosts list", "hosts add", "hosts drain"};
  return command;
}

}  // namespace dtrain::cli
