#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>

#include "cli/command.hpp"
#include "cli/own_outputs.hpp"
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

plot::NamedRun read_run(const Path& run) {
  const job::JobFolder folder = folder_of(run);
  plot::StepColumns steps;
  if (file_exists(folder.steps())) steps.add(read_file(folder.steps()));
  if (!steps.began()) {
    throw UsageError(fmt::format("{}: no record of a training run", folder.steps().string()),
                     "name the --model-prefix or the --job-dir of a training, which writes it while it trains");
  }
  return {name_of(run), plot::curves_of(steps, elastic::read_events(folder.events()))};
}

std::vector<plot::NamedRun> read_runs(const std::vector<Path>& paths) {
  if (paths.size() > plot::kMostRuns) {
    throw UsageError(fmt::format("{} runs: a picture compares up to {}", paths.size(), plot::kMostRuns),
                     "name fewer of them");
  }
  std::vector<plot::NamedRun> runs;
  for (const Path& path : paths) runs.push_back(read_run(path));
  std::map<std::string, int> bearers;  // job folders are often of one name
  for (const plot::NamedRun& run : runs) ++bearers[run.name];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (bearers[runs[i].name] > 1) runs[i].name = paths[i].string();
  }
  return runs;
}

std::optional<double> best_of(const std::vector<plot::CurvePoint>& points) {
  const auto best = std::ranges::max_element(points, {}, &plot::CurvePoint::value);
  return best == points.end() ? std::nullopt : std::optional(best->value);
}
std::optional<double> last_of(const std::vector<plot::CurvePoint>& points) {
  return points.empty() ? std::nullopt : std::optional(points.back().value);
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }
std::string number_or_dash(const std::optional<double>& number) {
  return number ? fmt::format("{:.4f}", *number) : std::string("-");
}

Json document(const PlotCommand& options, const std::vector<plot::NamedRun>& runs) {
  Json list = Json::array();
  for (const plot::NamedRun& run : runs) {
    list.push_back(
        Json::object({{"run", run.name},
                      {"epochs", run.curves.epochs},
                      {"seconds", run.curves.seconds},
                      {"changes", std::uint64_t{run.curves.changes.size()}},
                      {"loss", number_or_null(last_of(run.curves.loss))},
                      {"validation_accuracy", number_or_null(last_of(run.curves.validation_accuracy))},
                      {"best_validation_accuracy", number_or_null(best_of(run.curves.validation_accuracy))}}));
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
  std::string heading() const { return fmt::format("{}{}", accuracy ? "  accuracy" : "", precision ? "      AP" : ""); }
  std::string row(const plot::RunCurves& curves) const {
    const std::string last = number_or_dash(last_of(curves.validation_accuracy));
    return (accuracy ? fmt::format("  {:>8}", curves.detects ? "-" : last) : "") +
           (precision ? fmt::format("  {:>6}", curves.detects ? last : "-") : "");
  }
  bool accuracy = false, precision = false;
};

void answer_comparison(const std::vector<plot::NamedRun>& runs, Reporter& reporter) {
  const Measures measures(runs);
  std::size_t width = 3;
  for (const plot::NamedRun& run : runs) width = std::max(width, run.name.size());
  reporter.answer(reporter.paint_answer(
      Style::heading, fmt::format("{:<{}}  epochs  seconds    loss{}    best", "run", width, measures.heading())));
  for (const plot::NamedRun& run : runs) {
    reporter.answer(fmt::format("{:<{}}  {:>6.1f}  {:>7.0f}  {:>6}{}  {:>6}", run.name, width, run.curves.epochs,
                                run.curves.seconds, number_or_dash(last_of(run.curves.loss)), measures.row(run.curves),
                                number_or_dash(best_of(run.curves.validation_accuracy))));
  }
}

ExitCode act(const PlotCommand& options, const config::OptionSet&, Reporter& reporter) {
  require_on_this_machine({"--out", options.out}, "file");
  require_ending("--out", options.out, {".svg", ".png"});
  refuse_to_replace_picture("--out", options.out);
  const std::vector<plot::NamedRun> runs = read_runs(options.runs);
  make_folder(options.out.parent_path());
  const plot::Drawing drawing =
      runs.size() == 1 ? plot::draw_run(runs.front().curves, runs.front().name) : plot::draw_comparison(runs);
  write_output(options.out, picture_of(drawing, options.out));
  if (reporter.json()) {
    reporter.answer_json(document(options, runs));
    return ExitCode::ok;
  }
  if (runs.size() > 1) answer_comparison(runs, reporter);
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
