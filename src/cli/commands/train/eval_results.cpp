#include "eval_results.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/file_exists.hpp>

#include "cli/printable.hpp"
#include "object_report.hpp"
#include "output_places.hpp"
#include "report_files.hpp"

namespace dtrain::cli {
namespace {

// -1: nothing to measure.
std::string figure_text(double value) { return value < 0 ? "-" : fmt::format("{:.4f}", value); }

Json document(const ResultsChoice& choice, const train::CocoReport& report) {
  Json json = Json::object({{"schema", "dtrain.eval-results/1"},
                            {"results_file", choice.results.string()},
                            {"annotations_file", choice.annotations.string()},
                            {"images", std::uint64_t{report.pictures}},
                            {"objects", std::uint64_t{report.objects}},
                            {"results", std::uint64_t{report.results}},
                            {"unknown", std::uint64_t{report.unknown}},
                            {"without_mask", std::uint64_t{report.without_mask}}});
  json["boxes"] = report.boxes ? coco_score_json(*report.boxes, report.categories) : Json();
  json["masks"] = report.masks ? coco_score_json(*report.masks, report.categories) : Json();
  return json;
}

void warn_of_masks(const ResultsChoice& choice, const train::CocoReport& report, Reporter& reporter) {
  if (report.masks_unscored) {
    reporter.warn(
        fmt::format("no object of {} has a mask: only boxes are scored; give annotations with \"segmentation\" "
                    "to score masks too",
                    choice.annotations.string()));
  } else if (report.without_mask > 0) {
    reporter.warn(fmt::format("{} {} of {} without a mask, and {} as masks of no pixel", report.without_mask,
                              report.without_mask == 1 ? "object is" : "objects are", choice.annotations.string(),
                              report.without_mask == 1 ? "counts" : "count"));
  }
}

void answer_figures(const train::CocoReport& report, bool per_class, const std::vector<Path>& files,
                    Reporter& reporter) {
  if (report.boxes) answer_coco_score("box", *report.boxes, report.categories, per_class, reporter);
  if (report.masks) answer_coco_score("mask", *report.masks, report.categories, per_class, reporter);
  reporter.answer(fmt::format("images={}\nobjects={}\nresults={}", report.pictures, report.objects, report.results));
  for (const Path& file : files) reporter.answer(file.string());
}

std::vector<Path> write_files(const Path& folder, const train::CocoReport& report, const ResultsChoice& choice,
                              Reporter& reporter) {
  ObjectReport written = write_object_report(folder, report, {choice.results, choice.annotations, choice.pictures});
  if (written.missing > 0)
    reporter.warn(fmt::format("{} pictures with many mistakes cannot be read in {}, and are not drawn", written.missing,
                              choice.pictures.string()));
  return std::move(written.files);
}

}  // namespace

void bind_results(config::OptionSet& set, ResultsChoice& choice) {
  set.group("Results of COCO, instead of a checkpoint");
  set.add("--results", choice.results,
          "JSON file with objects that a detector found, in COCO's results format; prints its average precision");
  set.add("--annotations", choice.annotations, "COCO JSON file with the true objects, for --results");
  set.add("--pictures", choice.pictures,
          "folder with the images of the annotations: --report draws those with the most mistakes, with their "
          "annotations at the left and the found objects at the right");
}

Json coco_score_json(const train::CocoScore& score, const std::vector<std::string>& categories) {
  Json json = train::figures_json(score.figures);
  Json list = Json::array();
  for (std::size_t i = 0; i < score.by_category.size(); ++i) {
    Json figures = train::figures_json(score.by_category[i]);
    figures["class"] = categories[i];
    list.push_back(std::move(figures));
  }
  json["per_class"] = std::move(list);
  return json;
}

void answer_coco_score(const std::string& what, const train::CocoScore& score,
                       const std::vector<std::string>& categories, bool per_class, Reporter& reporter) {
  for (const train::NamedFigure& figure : train::coco_figure_names()) {
    reporter.answer(
        fmt::format("{}_{}={}  {}", what, figure.name, figure_text(score.figures.*figure.value), figure.text));
  }
  if (!per_class) return;
  std::size_t width = std::string_view("class").size();
  for (const std::string& name : categories) width = std::max(width, printable_word(name).size());
  reporter.answer(fmt::format("{:<{}}  {:>7}  {:>7}  {:>7}  {:>7}", "class", width, "AP", "AP50", "AP75", "AR100"));
  for (std::size_t i = 0; i < categories.size(); ++i) {
    const train::CocoFigures& figures = score.by_category[i];
    reporter.answer(fmt::format("{:<{}}  {:>7}  {:>7}  {:>7}  {:>7}", printable_word(categories[i]), width,
                                figure_text(figures.ap), figure_text(figures.ap50), figure_text(figures.ap75),
                                figure_text(figures.ar100)));
  }
}

ExitCode score_results(const ResultsChoice& choice, bool per_class, const Path& folder, Reporter& reporter) {
  if (choice.results.empty() || choice.annotations.empty()) {
    throw UsageError(choice.results.empty() ? "eval: --results is missing" : "eval: --annotations is missing",
                     "for example: dtrain eval --results found.json --annotations instances_val2017.json");
  }
  for (const Path& file : {choice.results, choice.annotations}) {
    if (!file_exists(file))
      throw DataError(fmt::format("{}: no such file", file.string()), "name a JSON file of COCO's format");
  }
  if (!choice.pictures.empty() && folder.empty())
    throw UsageError("eval: --pictures needs --report", "name the folder for what is drawn");
  if (!folder.empty()) {
    refuse_to_replace_in_report(folder);
    make_folder(folder);
  }
  const train::CocoReport report = train::score_coco_results(choice.results, choice.annotations);
  if (report.unknown > 0)
    reporter.warn(
        fmt::format("{} results are of categories that the annotations lack, and do not count", report.unknown));
  warn_of_masks(choice, report, reporter);
  const auto answer = [&](const std::vector<Path>& files) {
    if (reporter.json()) {
      Json json = document(choice, report);
      if (!folder.empty()) json["report"] = paths_json(files);
      reporter.answer_json(json);
    } else {
      answer_figures(report, per_class, files, reporter);
    }
  };
  if (folder.empty()) {
    answer({});
  } else {
    answer_with_files([&] { return write_files(folder, report, choice, reporter); }, answer);
  }
  return ExitCode::ok;
}

}  // namespace dtrain::cli
