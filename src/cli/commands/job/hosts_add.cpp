#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
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

// "slots=2" belongs to the host before it.
std::vector<std::string> lines_of(const std::string& words) {
  std::vector<std::string> lines;
  for (const std::string& word : split(words, ' ')) {
    if (word.empty()) continue;
    if (word.starts_with("slots=") && !lines.empty()) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

ExitCode act(const AddCommand& options, const config::OptionSet&, Reporter& reporter) {
  const std::vector<std::string> lines = lines_of(options.hosts);
  std::vector<std::string> others = lines;
  std::erase_if(others, [&](const std::string& line) { return job::add_and_start(options.job, line, reporter); });
  if (!others.empty()) job::warn_of_host_file(options.job, job::edit_hosts(options.job, {.add = others}), reporter);
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.hosts-add/1"}, {"added", json_texts(lines)}, {"file", options.job.hosts().string()}}));
    return ExitCode::ok;
  }
  reporter.note(fmt::format("Added {} to {}; `dtrain hosts list --job-dir {}` shows their state", join(lines, ", "),
                            options.job.hosts().string(), options.job.path.string()));
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
