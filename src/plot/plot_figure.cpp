#include "plot_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/text.hpp>

#include "figure.hpp"

namespace dtrain::plot {
namespace {

constexpr const char *kOfBoxes = "average precision of boxes", *kOfMasks = "average precision of masks";
constexpr Color kTraining = kBlue, kValidation = kOrange;
constexpr std::array<Color, kMostRuns> kRunColors = {kBlue, kOrange, kGreen, kVermilion, kPurple, kSkyBlue, kInk};

// What a unit of the axis of time is, in seconds.
struct TimeUnit {
  double seconds;
  const char* name;
};
TimeUnit unit_of(double seconds) {
  if (seconds > 3 * 3600) return {3600, "hours of training"};
  if (seconds > 240) return {60, "minutes of training"};
  return {1, "seconds of training"};
}

std::string subtitle_of(const RunCurves& curves) {
  constexpr std::size_t kLongest = 60;
  std::string crews;
  for (const Crew& crew : curves.crews) {
    const bool is_full = crews.size() > kLongest;
    crews += fmt::format("{}{}", crews.empty() ? "" : " \u00b7 ", is_full ? "\u2026" : std::to_string(crew.workers));
    if (is_full) break;
  }
  return fmt::format("{} of training, workers {}{}", format_duration(std::chrono::duration<double>(curves.seconds)),
                     crews, curves.diverged ? "; it diverged" : "");
}

}  // namespace

Drawing draw_run(const RunCurves& curves, const std::string& title) {
  const TimeUnit unit = unit_of(curves.seconds);
  const Paper paper{.title = title,
                    .subtitle = subtitle_of(curves),
                    .legend = {{"\u00d7 lost", kVermilion},
                               {"\u2212 left", kGrey},
                               {"+ joined", kGreen},
                               {"validation", kValidation},
                               {"training", kTraining}},
                    .crews = curves.crews,
                    .changes = curves.changes,
                    .length = curves.seconds,
                    .unit = unit.seconds,
                    .unit_name = unit.name};
  std::vector<Panel> panels = {
      {"samples a second", {{.points = &curves.speed, .color = kTraining, .breaks = &curves.pauses}}, true},
      {"loss", {{&curves.loss, kTraining}, {&curves.validation_loss, kValidation, true}}},
      {curves.detects ? kOfBoxes : "accuracy",
       {{&curves.accuracy, kTraining}, {&curves.validation_accuracy, kValidation, true}},
       true,
       1.0}};
  if (!curves.validation_masks.empty())
    panels.push_back({kOfMasks, {{&curves.validation_masks, kValidation, true}}, true, 1.0});
  return draw_figure(paper, panels);
}

Drawing draw_comparison(const std::vector<NamedRun>& runs) {
  Paper paper{.title = fmt::format("{} runs", runs.size()),
              .subtitle = "lines: training, dots: validation",
              .legend = {},
              .by_epochs = true,
              .unit_name = "epochs"};
  if (std::ranges::any_of(runs, [](const NamedRun& run) { return run.curves.diverged; }))
    paper.subtitle += "; diverged: cut off";
  Panel loss{"training loss", {}}, validation_loss{"validation loss", {}};
  const auto detectors = std::ranges::count_if(runs, [](const NamedRun& run) { return run.curves.detects; });
  const char* const measure = detectors == 0                  ? "validation accuracy"
                              : detectors == std::ssize(runs) ? kOfBoxes
                                                              : "accuracy, or average precision of boxes";
  Panel accuracy{measure, {}, true, 1.0}, masks{kOfMasks, {}, true, 1.0};
  Panel speed{"samples a second", {}, true};
  for (std::size_t i = runs.size(); i-- > 0;) {
    const RunCurves& curves = runs[i].curves;
    const Color color = kRunColors.at(i);
    paper.legend.emplace_back(runs[i].name, color);
    loss.curves.push_back({&curves.loss, color, false, !curves.diverged});
    validation_loss.curves.push_back({&curves.validation_loss, color, true, !curves.diverged});
    accuracy.curves.push_back({&curves.validation_accuracy, color, true});
    if (!curves.validation_masks.empty()) masks.curves.push_back({&curves.validation_masks, color, true});
    speed.curves.push_back({&curves.speed, color});
    paper.length = std::max(paper.length, curves.epochs);
  }
  std::vector<Panel> panels = {loss, validation_loss, accuracy};
  if (!masks.curves.empty()) panels.push_back(masks);
  panels.push_back(speed);
  return draw_figure(paper, panels);
}

}  // namespace dtrain::plot
