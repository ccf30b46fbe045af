#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <span>

#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/train/run_ends.hpp>

#include "cli/command.hpp"
#include "cli/own_outputs.hpp"
#include "cli/table.hpp"
#include "job/spec/job_folder.hpp"
#include "output_places.hpp"
#include "plot/drawing_raster.hpp"
#include "plot/plot_figure.hpp"
#include "plot/plot_run.hpp"

namespace dtrain::cli {
namespace {

struct PlotCommand {
  std::vector<Path> runs;
  Path out;
};

void bind(config::OptionSet& set, PlotCommand& options) {
  set.group("Options");
  config::Option& runs = set.add_paths("RUN", options.runs,
                                       "--job-dir or --model-prefix of a running or finished training; several are "
                                       "compared, epoch by epoch");
  runs.required = true;
  runs.offers = config::Offers::jobs;
  set.add("--out", options.out, "picture to write, NAME.svg or NAME.png").required = true;
}

std::string picture_of(const plot::Drawing& drawing, const Path& out) {
  if (out.extension() == ".svg") return plot::to_svg(drawing);
  return data::encode_own_png(plot::to_image(drawing, plot::kPixelsAPoint));
}

// The folder itself, or the one that belongs to a prefix of checkpoints.
job::JobFolder folder_of(const Path& run) {
  const job::JobFolder named{run}, beside = job::folder_of_prefix(run);
  return !std::filesystem::exists(named.steps()) && std::filesystem::exists(beside.steps()) ? beside : named;
}

std::string name_of(const Path& run) {
  const Path whole = std::filesystem::absolute(run).lexically_normal();
  const std::string name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  return name.empty() ? "job" : name;
}

// How many of the accuracies were found since the validation data, or the views of them, changed: they compare. A run
// that goes on with others notes so.
std::size_t comparable_accuracies(std::span<const Json> events) {
  std::size_t count = 0;
  std::optional<Json> samples;
  for (const Json& event : events) {
    if (event.find_text("message").find(train::kBestBeginsAnew) != std::string::npos) count = 0;
    if (event_kind(event) != EventKind::evaluation) continue;
    if (const Json* const here = event.find("samples")) {
      if (samples && *samples != *here) count = 0;
      samples = *here;
    }
    const Json* const accuracy = event.find("accuracy");
    if (accuracy && accuracy->is_number()) ++count;
  }
  return count;
}

struct PlottedRuns {
  std::vector<plot::NamedRun> runs;
  std::vector<std::optional<double>> best;  // accuracy of each, of those that compare with its last
};

std::optional<double> best_of_last(const std::vector<plot::CurvePoint>& points, std::size_t count) {
  const auto last = points | std::views::drop(points.size() - std::min(count, points.size()));
  const auto best = std::ranges::max_element(last, {}, &plot::CurvePoint::value);
  return best == last.end() ? std::nullopt : std::optional(best->value);
}

void read_run(const Path& run, PlottedRuns& plotted) {
  const job::JobFolder folder = folder_of(run);
  plot::StepColumns steps;
  if (file_exists(folder.steps())) steps.add(read_file(folder.steps()));
  if (!steps.began()) {
    throw UsageError(fmt::format("{}: no record of a training run", folder.steps().string()),
                     "name the --model-prefix or the --job-dir of a training, which writes it while it trains");
  }
  const std::vector<Json> events = elastic::read_events(folder.events());
  plotted.runs.push_back({name_of(run), plot::curves_of(steps, events)});
  plotted.best.push_back(best_of_last(plotted.runs.back().curves.validation_accuracy, comparable_accuracies(events)));
}

PlottedRuns read_runs(const std::vector<Path>& paths) {
  if (paths.size() > plot::kMostRuns) {
    throw UsageError(fmt::format("{} runs: a picture compares up to {}", paths.size(), plot::kMostRuns),
                     "name fewer of them");
  }
  PlottedRuns plotted;
  for (const Path& path : paths) read_run(path, plotted);
  std::vector<plot::NamedRun>& runs = plotted.runs;
  std::map<std::string, int> bearers;  // job folders are often of one name
  for (const plot::NamedRun& run : runs) ++bearers[run.name];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (bearers[runs[i].name] > 1) runs[i].name = paths[i].string();
  }
  return plotted;
}

std::optional<double> last_of(const std::vector<plot::CurvePoint>& points) {
  return points.empty() ? std::nullopt : std::optional(points.back().value);
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }
std::string number_or_dash(const std::optional<double>& number) {
  constexpr double kHuge = 1e12;
  if (!number) return "-";
  return std::abs(*number) < kHuge ? fmt::format("{:.4f}", *number) : fmt::format("{:.3e}", *number);
}

// The loss of the newest epoch: a line of steps.jsonl holds only the steps since the one before, whose number follows
// the speed. None where the training diverged, perhaps at a step that has no line.
std::optional<double> loss_of(const plot::RunCurves& curves) {
  if (curves.diverged) return std::nullopt;
  return curves.epoch_loss ? curves.epoch_loss : last_of(curves.loss);
}

Json document(const PlotCommand& options, const PlottedRuns& plotted) {
  Json list = Json::array();
  const std::vector<plot::NamedRun>& runs = plotted.runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const plot::NamedRun& run = runs[i];
    list.push_back(Json::object({{"run", run.name},
                                 {"epochs", run.curves.epochs},
                                 {"seconds", run.curves.seconds},
                                 {"changes", std::uint64_t{run.curves.changes.size()}},
                                 {"loss", number_or_null(loss_of(run.curves))},
                                 {"diverged", run.curves.diverged},
                                 {"validation_accuracy", number_or_null(last_of(run.curves.validation_accuracy))},
                                 {"best_validation_accuracy", number_or_null(plotted.best[i])}}));
  }
  Json json = Json::object({{"schema", "dtrain.plot/1"}, {"file", options.out.string()}, {"runs", list}});
  json["seconds"] = runs.front().curves.seconds;
  json["changes"] = std::uint64_t{runs.front().curves.changes.size()};
  return json;
}

// A column for each measure that some run was validated by: the average precision of a detector's boxes is no accuracy.
struct Measures {
  explicit Measures(const std::vector<plot::NamedRun>& runs) {
    precision = std::ranges::any_of(runs, [](const plot::NamedRun& run) { return run.curves.detects; });
    accuracy = !precision || std::ranges::any_of(runs, [](const plot::NamedRun& run) {
      return !run.curves.detects && !run.curves.validation_accuracy.empty();
    });
  }
  void add_headings(std::vector<std::string>& row) const {
    if (accuracy) row.push_back("val accuracy");
    if (precision) row.push_back("val AP");
  }
  void add_fields(const plot::RunCurves& curves, std::vector<std::string>& row) const {
    const std::string last = number_or_dash(last_of(curves.validation_accuracy));
    if (accuracy) row.push_back(curves.detects ? "-" : last);
    if (precision) row.push_back(curves.detects ? last : "-");
  }
  bool accuracy = false, precision = false;
};

void answer_comparison(const PlottedRuns& plotted, Reporter& reporter) {
  const std::vector<plot::NamedRun>& runs = plotted.runs;
  const Measures measures(runs);
  std::vector<std::vector<std::string>> rows{{"run", "epochs", "time", "train loss"}};
  measures.add_headings(rows.front());
  rows.front().push_back("best val");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const plot::NamedRun& run = runs[i];
    std::vector<std::string>& row = rows.emplace_back();
    row = {run.name, fmt::format("{:.1f}", run.curves.epochs),
           format_duration(std::chrono::duration<double>(run.curves.seconds)),
           run.curves.diverged ? "not finite" : number_or_dash(loss_of(run.curves))};
    measures.add_fields(run.curves, row);
    row.push_back(number_or_dash(plotted.best[i]));
  }
  answer_rows(rows, reporter);
}

ExitCode act(const PlotCommand& options, const config::OptionSet&, Reporter& reporter) {
  require_on_this_machine({"--out", options.out}, "file");
  require_ending("--out", options.out, {".svg", ".png"});
  refuse_to_replace_picture("--out", options.out);
  const PlottedRuns plotted = read_runs(options.runs);
  const std::vector<plot::NamedRun>& runs = plotted.runs;
  make_folder(options.out.parent_path());
  const plot::Drawing drawing =
      runs.size() == 1 ? plot::draw_run(runs.front().curves, runs.front().name) : plot::draw_comparison(runs);
  write_output(options.out, picture_of(drawing, options.out));
  if (reporter.json()) {
    reporter.answer_json(document(options, plotted));
    return ExitCode::ok;
  }
  if (runs.size() > 1) answer_comparison(plotted, reporter);
  reporter.answer(options.out.string());
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_plot() {
  auto command = make_command<PlotCommand>(
      "plot", "draw a run: its curves, and the hosts that joined and left; or compare several runs", act);
  command->examples = {"dtrain plot m/p --out run.png", "dtrain plot /efs/job --out run.svg",
                       "dtrain plot m/a m/b m/c --out runs.png"};
  command->see_also = {"events", "train"};
  return command;
}

}  // namespace dtrain::cli
