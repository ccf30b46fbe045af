#include "forecast_view.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>

#include "board/files.hpp"
#include "cluster_cloud.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::cli {
namespace {

constexpr double kSecondsOfAnHour = 3600;
constexpr std::size_t kMostOfSettings = 4 << 20;

board::Forecast forecast_from(const std::string& steps, const std::string& settings, const Path& folder) {
  try {
    return board::forecast_of(steps, settings);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", folder.string(), error.what()), error.hint());
  }
}

// Hours of machines are what a plan is made with; a shorter training has minutes and seconds.
std::string hours_text(double seconds) {
  return seconds < kSecondsOfAnHour ? format_duration(std::chrono::duration<double>(seconds))
                                    : fmt::format("{:.1f} hours", seconds / kSecondsOfAnHour);
}

[[noreturn]] void refuse_without_steps(const job::JobFolder& job) {
  throw UsageError(fmt::format("{}: no such file, so no step of a training was recorded there", job.steps().string()),
                   "give the job folder of a training, its --job-dir or PREFIX-run beside the checkpoints of PREFIX");
}

}  // namespace

board::Forecast forecast_in(const Path& folder) {
  const job::JobFolder job{std::filesystem::absolute(folder).lexically_normal()};  // as the files below name theirs
  const auto text = [](const Path& file) { return file_exists(file) ? read_file(file) : std::string(); };
  const auto files = board::open_files(job.path.string(), nullptr);
  const std::string steps = job.steps().string();
  const auto size = files->size(steps);
  if (!size) refuse_without_steps(job);
  const auto part = [&](std::uint64_t from, std::uint64_t most) { return files->read(steps, from, most); };
  return forecast_from(board::steps_for_forecast(*size, part), text(job.configuration()), folder);
}

board::Forecast forecast_on(net::SshSession& head, const Path& folder) {
  const job::JobFolder job{folder};
  const auto steps = head.stat(job.steps());
  if (!steps) refuse_without_steps(job);
  const auto part = [&](std::uint64_t from, std::uint64_t size) { return head.read_part(job.steps(), from, size); };
  return forecast_from(board::steps_for_forecast(steps->size, part),
                       head.stat(job.configuration()) ? head.read_file(job.configuration(), kMostOfSettings) : "",
                       folder);
}

void bind_forecast(config::OptionSet& set, ForecastChoice& choice) {
  set.group("Forecast");
  set.add("--forecast", choice.wanted,
          "also say how long the training that runs on the cluster still takes, and what the machines that run cost "
          "until "
          "then, from what its job folder shows of its speed")
      .flag_only = true;
  set.add("--job-dir", choice.job_dir, "DIR",
          "with --forecast: job folder as seen from the head (default that of the job that runs, else the shared "
          "folder)")
      .flag_only = true;
}

void require_forecast(const ForecastChoice& choice) {
  if (!choice.wanted && !choice.job_dir.empty()) {
    throw UsageError("--job-dir is read by --forecast", "give --forecast too, or leave --job-dir out");
  }
}

std::string forecast_line(const board::Forecast& forecast, const cluster::Cost& hourly, bool whole) {
  const double seconds = whole ? forecast.seconds() : forecast.seconds_left();
  const std::string pace = fmt::format("{:.0f} samples a second, as measured for {}", forecast.samples_per_second,
                                       format_duration(std::chrono::duration<double>(forecast.measured_seconds)));
  const std::string cost = cost_text(hourly, seconds / kSecondsOfAnHour);
  if (whole) {
    return fmt::format("the training of {:g} epochs takes {} and costs {}, at {}", forecast.epochs, hours_text(seconds),
                       cost, pace);
  }
  return fmt::format("{:.1f} of {:g} epochs are done; the rest takes {} and costs {}, at {}", forecast.epochs_done,
                     forecast.epochs, hours_text(seconds), cost, pace);
}

Json forecast_json(const board::Forecast& forecast, const cluster::Cost& hourly, bool whole) {
  const double seconds = whole ? forecast.seconds() : forecast.seconds_left();
  return Json::object({{"whole", whole},
                       {"samples_per_second", forecast.samples_per_second},
                       {"measured_seconds", forecast.measured_seconds},
                       {"epochs", forecast.epochs},
                       {"epochs_done", forecast.epochs_done},
                       {"samples_left", forecast.samples_left()},
                       {"hours", seconds / kSecondsOfAnHour},
                       {"dollars", hourly_json({hourly.hourly * seconds / kSecondsOfAnHour, hourly.unpriced})},
                       {"unpriced", unpriced_json(hourly)}});
}

}  // namespace dtrain::cli
