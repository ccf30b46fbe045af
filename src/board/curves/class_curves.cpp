#include "class_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::board {
namespace {

constexpr const char* kPredictionTable = "predictions.csv";
constexpr std::size_t kMostPoints = 60;
constexpr std::array kHeadings = {"sample", "label", "class", "predicted_label", "predicted", "probability"};

struct Guess {
  double probability = 0;
  bool right = false;
};
struct ClassGuesses {
  std::string name{};
  std::size_t samples = 0;
  std::vector<Guess> guesses{};
};

// More columns may follow.
bool has_headings(const CsvRow& row) {
  return row.fields.size() >= kHeadings.size() &&
         std::ranges::equal(kHeadings, std::span(row.fields).first(kHeadings.size()));
}

std::map<std::string, ClassGuesses> read_classes(std::string_view table) {
  const std::vector<CsvRow> rows = parse_csv(table, kPredictionTable);
  if (rows.empty() || !has_headings(rows[0]))
    throw DataError(fmt::format("{}: not a table of `dtrain eval --report`", kPredictionTable));
  std::map<std::string, ClassGuesses> classes;
  for (const CsvRow& row : std::span(rows).subspan(1)) {
    if (row.fields.size() < kHeadings.size()) continue;
    const std::string &label = row.fields[1], &guessed = row.fields[3];
    ClassGuesses& own = classes[label];
    own.name = row.fields[2];
    ++own.samples;
    ClassGuesses& named = classes[guessed];
    named.name = row.fields[4];
    named.guesses.push_back({parse_number(row.fields[5]).value_or(0), label == guessed});
  }
  return classes;
}

Json curve_of(ClassGuesses& one) {
  std::ranges::stable_sort(one.guesses, std::greater(), &Guess::probability);
  const std::size_t every = std::max<std::size_t>(1, one.guesses.size() / kMostPoints);
  Json recall = Json::array(), precision = Json::array();
  double right = 0;
  for (std::size_t i = 0; i < one.guesses.size(); ++i) {
    right += one.guesses[i].right ? 1 : 0;
    const double share = right / static_cast<double>(i + 1);
    if ((i + 1) % every != 0 && i + 1 != one.guesses.size()) continue;
    recall.push_back(one.samples > 0 ? right / static_cast<double>(one.samples) : 0);
    precision.push_back(share);
  }
  return Json::object({{"name", one.name},
                       {"samples", std::uint64_t{one.samples}},
                       {"f1", 2 * right / static_cast<double>(one.samples + one.guesses.size())},
                       {"recall", recall},
                       {"precision", precision}});
}

}  // namespace

Json class_curves(std::string_view table) {
  std::map<std::string, ClassGuesses> classes = read_classes(table);
  std::vector<Json> curves;
  for (auto& [label, one] : classes) curves.push_back(curve_of(one));
  std::ranges::stable_sort(curves, {}, [](const Json& curve) { return curve.at("f1").as_number(); });
  Json list = Json::array();
  for (Json& curve : curves) list.push_back(std::move(curve));
  return Json::object({{"curves", list}});
}

}  // namespace dtrain::board
