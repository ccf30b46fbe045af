#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/records.hpp>

#include "cli/command.hpp"
#include "job/report/steps_file.hpp"
#include "job/spec/job_folder.hpp"
#include "plot/drawing_raster.hpp"
#include "plot/plot_figure.hpp"
#include "plot/plot_run.hpp"

namespace dtrain::cli {
namespace {

struct PlotCommand {
  job::JobFolder job;
  Path out;
};

void bind(config::OptionSet& set, PlotCommand& options) {
  set.group("Options");
  config::Option& job = set.add("JOB", options.job.path, "--job-dir of a running or finished training");
  job.required = true;
  job.offers = config::Offers::jobs;
  set.add("--out", options.out, "picture to write, NAME.svg or NAME.png").required = true;
}

std::string picture_of(const plot::Drawing& drawing, const Path& out) {
  if (out.extension() == ".svg") return plot::to_svg(drawing);
  return data::encode_image(plot::to_image(drawing, plot::kPixelsAPoint), data::Encoding::png);
}

ExitCode act(const PlotCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.out.extension() != ".svg" && options.out.extension() != ".png") {
    throw UsageError(fmt::format("--out {}: the file name must end in .svg or .png", options.out.string()),
                     "the ending chooses the format");
  }
  const std::vector<Json> steps = job::read_steps(options.job.steps());
  if (steps.empty()) {
    throw UsageError(fmt::format("{}: no record of a training run", options.job.steps().string()),
                     fmt::format("`dtrain train --job-dir {}` writes it while it trains, alone or with workers",
                                 options.job.path.string()));
  }
  const plot::RunCurves curves = plot::curves_of(steps, elastic::read_events(options.job.events()));
  const std::string title = std::filesystem::absolute(options.job.path).lexically_normal().filename().string();
  write_file_atomic(options.out, picture_of(plot::draw_run(curves, title.empty() ? "job" : title), options.out));
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.plot/1"},
                                       {"file", options.out.string()},
                                       {"seconds", curves.seconds},
                                       {"changes", std::uint64_t{curves.changes.size()}}}));
  } else {
    reporter.answer(options.out.string());
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_plot() {
  auto command = make_command<PlotCommand>("plot", "draw a run: its curves, and the hosts that joined and left", act);
  command->examples = {"dtrain plot job --out run.png", "dtrain plot /efs/job --out run.svg"};
  command->see_also = {"events", "train"};
  return command;
}

}  // namespace dtrain::cli
