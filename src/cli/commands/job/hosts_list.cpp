#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "cli/commands/job/host_words.hpp"
#include "cli/table.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

struct ListCommand {
  job::JobFolder job{"."};
};

void bind(config::OptionSet& set, ListCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list.as_array()) text.append(text.empty() ? "" : ",").append(item.dump());
  return text.empty() ? "-" : text;
}

std::string text_of_member(const Json& host, std::string_view key) {
  const Json* value = host.find(key);
  return value && value->is_string() && !value->as_string().empty() ? value->as_string() : "-";
}

std::vector<std::string> row_of(const Json& host) {
  const double speed = host.at("samples_per_second").as_number();
  return {host.at("name").as_string(), host.at("state").as_string(),    joined(host.at("ranks")),
          joined(host.at("pids")),     text_of_member(host, "address"), speed > 0 ? fmt::format("{:.0f}", speed) : "-"};
}

void answer_reasons(const Json& host, Reporter& reporter) {
  for (const char* key : {"reason", "next"}) {
    const std::string text = text_of_member(host, key);
    if (text != "-") reporter.answer(fmt::format("    {}{}", key == std::string_view("next") ? "next: " : "", text));
  }
}

// Empty for a program whose steps are its own.
std::string step_size_text(const Json& document) {
  if (document.at("global_batch").as_integer() == 0) return {};
  return fmt::format("{} samples a step, learning rate x {:.4g}, ", document.at("global_batch").dump(),
                     document.at("rate_factor").as_number());
}

// What the job does where it does not train; a coordinator of an older version does not say.
std::string state_text(const Json& document) {
  const std::string state = text_of_member(document, "state"), reason = text_of_member(document, "state_reason");
  if (state == "-" || (state == "training" && reason == "-")) return {};
  std::string text = state == "training" || state == "starting" || state == "ending" || state == "stalled" ? state
                     : state == "waiting" ? "paused: waits for workers"
                                          : "paused";
  if (reason != "-") text += ": " + reason;
  if (const Json* left = document.find("stops_in_seconds"))
    text += fmt::format("; the job stops in {:.0f} s unless that changes", left->as_number());
  return text;
}

void answer_table(const Json& document, Reporter& reporter) {
  if (const std::string text = state_text(document); !text.empty()) reporter.answer(text);
  const Json& percent = document.at("goodput_percent");  // null: not measured
  reporter.answer(fmt::format("generation {}, {}, {}{:.0f} samples/sec, {} samples seen, goodput {}",
                              document.at("generation").dump(),
                              count_text(document.at("workers").as_integer(), "worker"), step_size_text(document),
                              document.at("samples_per_second").as_number(), document.at("samples_seen").dump(),
                              goodput_text(percent.is_number() ? percent.as_number() : 0)));
  const auto& hosts = document.at("hosts").as_array();
  std::vector<std::vector<std::string>> rows{{"HOST", "STATE", "RANKS", "PIDS", "ADDRESS", "SAMPLES/S"}};
  for (const Json& host : hosts) rows.push_back(row_of(host));
  const std::vector<std::string> lines = aligned(rows);
  reporter.answer(reporter.paint_answer(Style::heading, lines.front()));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    reporter.answer(lines[i + 1]);
    answer_reasons(hosts[i], reporter);
  }
}

ExitCode act(const ListCommand& options, const config::OptionSet&, Reporter& reporter) {
  const Json document =
      job::list_for_user(job::ask_coordinator(options.job, Json::object({{"ask", "list"}})), options.job);
  if (reporter.json()) {
    reporter.answer_json(document);
  } else {
    answer_table(document, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_hosts_list() {
  auto command =
      make_command<ListCommand>("hosts list", "list the hosts of a running job with their state and its reason", act);
  command->examples = {"dtrain hosts list --job-dir job", "dtrain hosts list --job-dir job --json"};
  command->see_also = {"hosts add", "hosts remove", "hosts drain", "events"};
  return command;
}

}  // namespace dtrain::cli
