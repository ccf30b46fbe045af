#include <fmt/format.h>

#include <dtrain/data/record.hpp>

#include "command.hpp"
#include "data_options.hpp"

namespace dtrain::cli {
namespace {

struct VerifyCommand {
  Path file;
  int limit = 16;
};

void bind(OptionSet& set, VerifyCommand& options) {
  set.group("What").add("FILE", options.file, "record file (.rec)").required = true;
  set.add("--limit", options.limit, "N", "problems to list", at_least(1));
}

Json document(const VerifyCommand& options, const data::VerifyReport& report) {
  Json problems = Json::array();
  for (const data::VerifyProblem& problem : report.problems) {
    problems.push_back(Json::object(
        {{"offset", problem.offset}, {"position", std::uint64_t{problem.position}}, {"what", problem.what}}));
  }
  return Json::object({{"schema", "dtrain.data-verify/1"},
                       {"file", options.file.string()},
                       {"records", std::uint64_t{report.records}},
                       {"good", report.problems.empty()},
                       {"problems", problems}});
}

ExitCode act(const VerifyCommand& options, const OptionSet&, Console& console) {
  require_records(options.file);
  const data::VerifyReport report = data::verify_records(options.file, static_cast<std::size_t>(options.limit));
  if (console.json()) {
    console.answer_json(document(options, report));
  } else if (report.problems.empty()) {
    console.answer(fmt::format("{}: {} records, all good", options.file.string(), report.records));
  } else {
    for (const data::VerifyProblem& problem : report.problems) {
      console.answer(fmt::format("{}: offset {}, record {}: {}", options.file.string(), problem.offset,
                                 problem.position, problem.what));
    }
  }
  if (report.problems.empty()) return ExitCode::ok;
  const data::VerifyProblem& first = report.problems.front();
  throw DataError(fmt::format("{}: damaged, first at offset {}: {}", options.file.string(), first.offset, first.what),
                  "make the file again with `dtrain data prepare`, or copy it again from where it came");
}

}  // namespace

std::unique_ptr<Command> make_data_verify() {
  auto command = make_command<VerifyCommand>("data verify", "check every record of a file", act);
  command->examples = {"dtrain data verify d/shapes_train.rec"};
  command->see_also = {"data ls", "data prepare"};
  return command;
}

}  // namespace dtrain::cli
