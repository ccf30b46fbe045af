#include <fmt/format.h>

#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "cli/commands/job/host_words.hpp"
#include "config/job_options.hpp"
#include "job/coordinator/start_from_here.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

struct AddCommand {
  job::JobFolder job{"."};
  std::string hosts;
};

void bind(config::OptionSet& set, AddCommand& options) {
  config::Option& hosts = set.group("Options").add(
      "HOST", options.hosts, "HOST", "hosts to add: name, or user@host:port, each optionally with slots=n");
  hosts.required = true;
  hosts.many = true;
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

// Hosts whose agents start from this machine are added one by one: what is wrong with a line must be known before.
void check_before_adding(const job::JobFolder& folder, const std::vector<std::string>& lines) {
  if (lines.size() < 2) return;
  const Json list = job::ask_coordinator(folder, Json::object({{"ask", "list"}}));
  if (!list.at("elastic").as_bool()) return;  // the coordinator refuses, and says why
  check_new_lines(lines, list, is_listed(folder.hosts()) ? read_file(folder.hosts()) : "");
}

void add_hosts(const job::JobFolder& folder, const std::vector<std::string>& lines, Reporter& reporter) {
  std::vector<std::string> added, others;
  const auto say_what_was_added = [&] {
    if (!added.empty())
      reporter.warn(fmt::format("Added {} to {}, before it failed", join(added, ", "), folder.hosts().string()));
  };
  try {
    for (const std::string& line : lines) (job::add_and_start(folder, line, reporter) ? added : others).push_back(line);
    if (!others.empty()) job::warn_of_host_file(folder, job::edit_hosts(folder, {.add = others}), reporter);
  } catch (const UsageError& error) {
    say_what_was_added();
    if (added.empty()) throw;
    throw Error(error.what(), error.hint());  // a usage error is one before which nothing was done
  } catch (const Error&) {
    say_what_was_added();
    throw;
  }
}

ExitCode act(const AddCommand& options, const config::OptionSet&, Reporter& reporter) {
  const std::vector<std::string> lines = host_lines(options.hosts);
  check_before_adding(options.job, lines);
  add_hosts(options.job, lines, reporter);
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.hosts-add/1"}, {"added", json_texts(lines)}, {"file", options.job.hosts().string()}}));
    return ExitCode::ok;
  }
  reporter.note(fmt::format("Added {} to {}; `{}` shows the state of the hosts", join(lines, ", "),
                            options.job.hosts().string(), options.job.command("hosts list")));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_hosts_add() {
  auto command = make_command<AddCommand>("hosts add", "add hosts to a running job", act);
  command->examples = {"dtrain hosts add w3 --job-dir job", "dtrain hosts add gpu7 slots=2 gpu8 --job-dir job"};
  command->see_also = {"hosts list", "hosts remove", "events"};
  return command;
}

}  // namespace dtrain::cli
