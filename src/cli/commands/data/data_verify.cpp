#include <fmt/format.h>

#include <optional>

#include <dtrain/data/record.hpp>

#include "cli/command.hpp"
#include "config/data_options.hpp"
#include "pack_command.hpp"

namespace dtrain::cli {
namespace {

struct VerifyCommand {
  std::vector<Path> files;
  int limit = 16;
};

void bind(config::OptionSet& set, VerifyCommand& options) {
  set.group("Options").add_paths("FILE", options.files, "record files, as names, patterns or prefixes").required = true;
  set.add("--limit", options.limit, "N", "number of problems to list per file", config::at_least(1));
}

std::vector<Path> find_all(const std::vector<Path>& named) {
  std::vector<Path> files;
  for (const Path& name : named) {
    config::require_records(name);
    for (const Path& file : data::find_records(name.string())) files.push_back(file);
  }
  return files;
}

Json document(const Path& file, const data::VerifyReport& report) {
  Json problems = Json::array();
  for (const data::VerifyProblem& problem : report.problems) {
    problems.push_back(Json::object({{"offset", problem.offset},
                                     {"position", std::uint64_t{problem.position}},
                                     {"what", problem.what},
                                     {"damage", problem.is_damage}}));
  }
  return Json::object({{"schema", "dtrain.data-verify/1"},
                       {"file", file.string()},
                       {"records", std::uint64_t{report.records}},
                       {"objects", std::uint64_t{report.objects}},
                       {"several_labels", std::uint64_t{report.several_labels}},
                       {"good", report.problems.empty()},
                       {"problems", problems}});
}

void tell(const Path& file, const data::VerifyReport& report, Reporter& reporter) {
  if (reporter.json()) return reporter.answer_json(document(file, report));
  if (report.problems.empty()) {
    const std::string objects = report.objects > 0 ? fmt::format(" with {} objects", report.objects) : std::string();
    reporter.answer(fmt::format("{}: {} records{}, no damage", file.string(), report.records, objects));
  }
  for (const data::VerifyProblem& problem : report.problems) {
    reporter.answer(
        fmt::format("{}: offset {}, record {}: {}", file.string(), problem.offset, problem.position, problem.what));
  }
  if (report.several_labels > 0)
    reporter.answer(fmt::format("{}: {}", file.string(), several_labels_text(report.several_labels)));
}

std::string hint_of_damage(const Path& file, const data::VerifyReport& report) {
  if (report.index_problems < report.problem_count)
    return "make the file again with `dtrain data prepare` or `dtrain data pack`, with --force, or copy it again; the "
           "first --force after an interrupted run only finishes that run's set, the next one makes all its files "
           "again";
  return fmt::format("copy both files again; if only the .idx is wrong, delete {}, and the .rec is scanned instead",
                     Path(file).replace_extension(".idx").string());
}

// Damage, where there is any, counts more than labels that were packed as they are.
DataError error_of(const Path& file, const data::VerifyReport& report) {
  const bool is_damaged = report.damage.has_value();
  const data::VerifyProblem& first = is_damaged ? *report.damage : report.problems.front();
  const char* const state = is_damaged ? "damaged" : "has labels that no training takes";
  return DataError(fmt::format("{}: {}, first at offset {}: {}", file.string(), state, first.offset, first.what),
                   is_damaged
                       ? hint_of_damage(file, report)
                       : "correct the list or the annotations that it was made from, and pack it again with --force");
}

ExitCode act(const VerifyCommand& options, const config::OptionSet&, Reporter& reporter) {
  std::optional<DataError> error;
  for (const Path& file : find_all(options.files)) {
    const data::VerifyReport report = data::verify_records(file, static_cast<std::size_t>(options.limit));
    tell(file, report, reporter);
    if (!report.problems.empty() && !error) error = error_of(file, report);
  }
  if (error) throw *error;
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_verify() {
  auto command = make_command<VerifyCommand>("data verify", "check every record of record files for damage", act);
  command->examples = {"dtrain data verify d/shapes_train.rec"};
  command->see_also = {"data ls", "data prepare"};
  return command;
}

}  // namespace dtrain::cli
