#include <fmt/format.h>

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/train/ledger.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::cli {
namespace {

struct EventsCommand {
  job::JobFolder job{"."};
  bool ledger = false;
};

void bind(config::OptionSet& set, EventsCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
  set.group("Options").add("--ledger", options.ledger,
                           "print the samples that each step consumed, for a job started with --sample-ledger");
}

std::string text_of(const Json& value) { return value.is_string() ? value.as_string() : value.dump(); }

// "2026-01-31T23:59:59.123456Z" -> "23:59:59.123"
std::string clock_of(const std::string& time) { return time.size() >= 23 ? time.substr(11, 12) : time; }

// "2026-01-31"
std::string date_of(const std::string& time) { return time.substr(0, time.find('T')); }

std::string duration_text(std::string_view name, const Json& seconds) {
  return fmt::format("{} {}", name, format_duration(std::chrono::duration<double>(seconds.as_number())));
}

// "detect 1.2 s" of "detect_seconds": 1.2, or of "seconds": {"detect": 1.2}; "took 1.2 s" of "seconds": 1.2.
void add_durations(std::string_view key, const Json& value, std::vector<std::string>& durations) {
  if (value.is_number())
    durations.push_back(duration_text(key == "seconds" ? "took" : key.substr(0, key.rfind('_')), value));
  if (!value.is_object()) return;
  for (const auto& [name, seconds] : value.as_object()) {
    if (seconds.is_number()) durations.push_back(duration_text(name, seconds));
  }
}

// "loss=0.5", and "boxes.ap=0.25 boxes.ap50=0.5" of an object.
void add_facts(const std::string& name, const Json& value, std::vector<std::string>& facts) {
  if (value.is_null()) return;
  if (!value.is_object()) return facts.push_back(fmt::format("{}={}", name, text_of(value)));
  for (const auto& [key, part] : value.as_object()) add_facts(fmt::format("{}.{}", name, key), part, facts);
}

// What is known of the event besides its number, time and kind: facts first, durations behind them.
std::string details_of(const Json& event) {
  std::vector<std::string> facts, durations;
  for (const auto& [key, value] : event.as_object()) {
    if (key == "seq" || key == "time" || key == "event" || value.is_null()) continue;
    if (key.ends_with("seconds")) {
      add_durations(key, value, durations);
    } else {
      add_facts(key, value, facts);
    }
  }
  if (durations.empty()) return join(facts, " ");
  return fmt::format("{} [{}]", join(facts, " "), join(durations, ", "));
}

Json with_schema(const char* schema, const Json& fields) {
  Json row = Json::object({{"schema", schema}});
  for (const auto& [key, value] : fields.as_object()) row[key] = value;
  return row;
}

void answer_events(const job::JobFolder& job, Reporter& reporter) {
  const std::vector<Json> events = elastic::read_events(job.events());
  if (events.empty()) {
    throw UsageError(fmt::format("{}: no job in this folder", job.path.string()),
                     "give --job-dir the folder that was given to `dtrain train --job-dir`");
  }
  std::string date;
  for (const Json& event : events) {
    if (reporter.json()) {
      reporter.answer_json(with_schema("dtrain.event/1", event));
      continue;
    }
    const std::string& time = event.at("time").as_string();
    if (date_of(time) != std::exchange(date, date_of(time))) reporter.answer(date + " UTC");
    reporter.answer(fmt::format("{}  {:<18}{}", clock_of(time), event.at("event").as_string(), details_of(event)));
  }
}

// One object a step: {"epoch", "step", "samples": [ids]}.
void answer_ledger(const job::JobFolder& job, Reporter& reporter) {
  if (!std::filesystem::exists(job.ledger())) {
    throw UsageError(fmt::format("{}: the job has no sample ledger", job.path.string()),
                     "`dtrain train --sample-ledger` writes it");
  }
  const train::Ledger ledger = train::read_ledger(job.ledger());
  for (const auto& [step, ids] : ledger.steps) {
    if (reporter.json()) {
      Json samples = Json::array();
      for (std::uint32_t id : ids) samples.push_back(id);
      reporter.answer_json(with_schema(
          "dtrain.ledger/1", Json::object({{"epoch", step.first}, {"step", step.second}, {"samples", samples}})));
    } else {
      reporter.answer(fmt::format("epoch {} step {}: {}", step.first, step.second, fmt::join(ids, " ")));
    }
  }
  for (const auto& [epoch, samples] : ledger.missing()) {
    reporter.warn(
        fmt::format("epoch {}: {} of {} samples were consumed, but are not recorded: their worker was killed "
                    "while it could not write",
                    epoch, samples, ledger.samples));
  }
}

ExitCode act(const EventsCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.ledger) {
    answer_ledger(options.job, reporter);
  } else {
    answer_events(options.job, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_events() {
  auto command = make_command<EventsCommand>("events", "show the events of a job and how long changes took", act);
  command->examples = {"dtrain events --job-dir job", "dtrain events --job-dir job --ledger --json"};
  command->see_also = {"hosts list", "train"};
  return command;
}

}  // namespace dtrain::cli
