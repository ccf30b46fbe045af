#include "evaluation_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/link_free_folder.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

#include "board/curves/class_curves.hpp"
#include "explain.hpp"
#include "reply.hpp"

namespace dtrain::board {
namespace {

constexpr std::size_t kMostClasses = 200, kMostPictures = 10'000;
constexpr double kMostGuesses = 1e9;                        // more are nonsense in an event
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;  // bytes of a file
constexpr const char *kTable = "confusion.csv", *kPredictions = "predictions.csv", *kScores = "per_class.csv";

// A folder with per_class.csv. Another user may have made it, so that nothing in it is read through a link.
class Report {
 public:
  explicit Report(Path folder) : folder_(std::move(folder)), below_(folder_.parent_path()) {}
  const Path& folder() const { return folder_; }
  bool has(const std::string& name) const { return below_.status(path_of(name)).has_value(); }
  // nullopt: there is no such file.
  std::optional<std::string> read(const std::string& name) const {
    const std::string path = path_of(name);
    const auto status = below_.status(path);
    if (status && static_cast<std::uint64_t>(status->st_size) > kLargest)
      throw DataError(fmt::format("{}: holds more than the {} that are shown", path, format_bytes(kLargest)));
    return below_.read(path, 0, kLargest);
  }
  std::vector<std::string> pictures() const {
    std::vector<std::string> names;
    for (const ListedFile& file : below_.list(folder_.string(), kMostPictures)) {
      if (Path(file.name).extension() == ".png") names.push_back(file.name);
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  std::string path_of(const std::string& name) const { return (folder_ / name).string(); }

  Path folder_;
  LinkFreeFolder below_;
};

// One that cannot be looked into must not hide the others.
bool is_report(const Path& folder) {
  try {
    return Report(folder).has(kScores);
  } catch (const Error&) {
    return false;
  }
}

// Reports by the name of their folder.
std::map<std::string, Report> reports_of(const RunPlace& run) {
  std::map<std::string, Report> reports;
  std::error_code ignored;
  const std::string prefix = run.prefix();
  std::vector<Path> places = {Path(run.folder), Path(run.folder).parent_path()};
  if (!prefix.empty()) places.push_back(Path(prefix).parent_path());
  for (const Path& place : places) {
    for (auto entry = std::filesystem::directory_iterator(place, ignored);
         entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
      if (is_report(entry->path())) reports.emplace(entry->path().filename().string(), entry->path());
    }
  }
  return reports;
}

Json matrix_of(const Report& report) {
  const auto text = report.read(kTable);
  if (!text) return {};
  const std::vector<CsvRow> rows = parse_csv(*text, kTable);
  if (rows.empty() || rows.size() > kMostClasses + 1) return {};
  Json names = Json::array(), table = Json::array();
  for (std::size_t i = 1; i < rows[0].fields.size(); ++i) names.push_back(rows[0].fields[i]);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    Json row = Json::array();
    for (std::size_t j = 1; j < rows[i].fields.size(); ++j) row.push_back(parse_integer(rows[i].fields[j]).value_or(0));
    table.push_back(std::move(row));
  }
  return Json::object({{"names", names}, {"rows", table}});
}

Json scores_of(const Report& report) {
  const auto text = report.read(kScores);
  if (!text) return {};
  Json names = Json::array(), table = Json::array();
  bool first = true;
  for (const CsvRow& row : parse_csv(*text, (report.folder() / kScores).string())) {
    Json cells = Json::array();
    for (const std::string& field : row.fields) cells.push_back(field);
    if (first) {
      names = std::move(cells);
    } else {
      table.push_back(std::move(cells));
    }
    first = false;
  }
  return Json::object({{"names", names}, {"rows", table}});
}

// What stands in the folder is the record or a checkpoint of another training whose name the report begins with.
bool is_of_another(const std::map<std::string, Report>::value_type& report, const std::string& prefix) {
  std::error_code ignored;
  for (auto entry = std::filesystem::directory_iterator(report.second.folder().parent_path(), ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const std::size_t end = name.rfind('-');
    if (end == name.npos || end == 0 || name.substr(0, end) == prefix) continue;
    const bool is_training = name.ends_with(kRunSuffix) || name.ends_with("-0001.json");
    if (is_training && report.first.starts_with(name.substr(0, end + 1))) return true;
  }
  return false;
}

// The one that is asked for, else one of this run: others may have theirs in the same folder.
std::map<std::string, Report>::const_iterator choose(const std::map<std::string, Report>& reports, const RunPlace& run,
                                                     const std::string& asked) {
  if (!asked.empty()) return reports.find(asked);
  const std::string prefix = Path(run.prefix()).filename().string();
  const auto own = reports.lower_bound(prefix + "-");
  if (own != reports.end() && own->first.starts_with(prefix + "-")) return own;
  return std::ranges::find_if(reports, [&](const auto& report) { return !is_of_another(report, prefix); });
}

Report chosen_report(const RunPlace& run, const Target& target) {
  const auto reports = reports_of(run);
  const auto found = choose(reports, run, target.text("report"));
  if (found == reports.end()) throw Missing(fmt::format("{}: no such report", target.text("report")));
  return found->second;
}

// The figures of a classifier. The accuracy among the best k guesses has its k in its name, so that runs that asked for
// another one have another curve. Events of earlier versions name none.
void add_class_figures(const Json& event, Json& figures) {
  const int k = static_cast<int>(std::clamp(member_number(event, "top_k"), 0.0, kMostGuesses));
  for (const char* name : {"loss", "accuracy", "top_k_accuracy"}) {
    const Json* const value = event.find(name);
    if (!value) continue;
    const bool has_k = k > 0 && name == std::string_view("top_k_accuracy");
    figures[has_k ? fmt::format("top_{}_accuracy", k) : name] = value->is_number() ? *value : Json();
  }
}

}  // namespace

Json validation_figures(const Json& event) {
  Json figures = Json::object();
  const auto precision = [](const Json& of, const char* name) {
    const double value = member_number(of, name, -1);
    return value < 0 ? Json() : Json(value);  // -1: there was nothing to measure
  };
  for (const auto& [what, one] : {std::pair{"boxes", "box"}, std::pair{"masks", "mask"}}) {
    const Json* const found = event.find(what);
    if (!found || !found->is_object()) continue;
    figures[fmt::format("{}_ap", one)] = precision(*found, "ap");
    figures[fmt::format("{}_ap50", one)] = precision(*found, "ap50");
  }
  if (!figures.as_object().empty()) return figures;
  add_class_figures(event, figures);
  return figures;
}

Json validations_of(const Run& run) {
  Json list = Json::array();
  for (const Json& event : run.events()) {
    if (event_kind(event) != EventKind::evaluation || !run.is_of_training(event)) continue;
    Json row = Json::object({{"epoch", counted_from_one(event, "epoch")}});
    add_class_figures(event, row);
    for (const char* what : {"boxes", "masks"}) {  // of a detector
      if (const Json* const figures = event.find(what))
        row[what] = Json::object({{"ap", member_number(*figures, "ap")}, {"ap50", member_number(*figures, "ap50")}});
    }
    list.push_back(std::move(row));
  }
  return Json::object({{"validations", list}});
}

void add_report(Json& answer, const RunPlace& run, const Target& target) {
  const auto reports = reports_of(run);
  Json names = Json::array();
  for (const auto& [name, report] : reports) names.push_back(name);
  answer["reports"] = names;
  const auto chosen = choose(reports, run, target.text("report"));
  if (chosen == reports.end()) {
    answer["report"] = Json();
    const std::string prefix = run.prefix();
    answer["hint"] = prefix.empty() ? "`dtrain eval PREFIX --report FOLDER ...` writes one."
                                    : fmt::format("`dtrain eval {} --report {} ...` writes one.",
                                                  net::shell_quoted(prefix), net::shell_quoted(prefix + "-report"));
    return;
  }
  const auto& [name, report] = *chosen;
  Json pictures = Json::array();
  for (const std::string& picture : report.pictures()) pictures.push_back(picture);
  answer["report"] = name;
  answer["matrix"] = matrix_of(report);
  answer["scores"] = scores_of(report);
  answer["pictures"] = pictures;
  answer["curves"] = report.has(kPredictions);
}

Json curves_of_report(const RunPlace& run, const Target& target) {
  const Report report = chosen_report(run, target);
  const auto table = report.read(kPredictions);
  if (!table) throw Missing(fmt::format("{}: is not there", (report.folder() / kPredictions).string()));
  return class_curves(*table);
}

net::HttpResponse picture_of_report(const RunPlace& run, const Target& target) {
  const Report report = chosen_report(run, target);
  const std::vector<std::string> names = report.pictures();
  const std::string name = target.text("name");
  auto picture = std::ranges::find(names, name) == names.end() ? std::nullopt : report.read(name);
  if (!picture) throw Missing(fmt::format("{}: no such picture", name));
  return reply(*std::move(picture), kPngType);
}

}  // namespace dtrain::board
