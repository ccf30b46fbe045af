#include "forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

#include "plot/epoch_progress.hpp"
#include "plot/step_columns.hpp"
#include "run.hpp"

namespace dtrain::board {
namespace {

constexpr std::uint64_t kLeastRead = 2 << 20, kMostRead = 64 << 20;
constexpr double kWindow = 600;  // seconds; a change of the workers is older than that, or the forecast is off

struct Passed {  // as of one line
  double time = 0, epochs = 0, samples = 0;
};

constexpr const char* kMeasureFirst =
    "let it train for a minute; or train with the same options, and --job-dir, on one machine of that type";

// Since the training last began.
struct Course {
  std::vector<Passed> lines{};
  bool has_begin = false;  // its first line stands in the text
};

Course course_in(std::string_view steps) {
  Course course;
  std::vector<Passed>& all = course.lines;
  double samples = 0;
  plot::EpochProgress progress;
  std::uint32_t begins = 0;
  for (const std::string& line : split(steps, '\n')) {
    if (trim(line).empty()) continue;
    try {
      const Json json = Json::parse(line, "a line of steps.jsonl");
      if (json.find("begins")) {
        all.clear();
        ++begins;
        course.has_begin = true;
        continue;
      }
      samples += json.at("samples").as_number();
      all.push_back({plot::seconds_of_time(json.at("time").as_string()),
                     progress.add(json.at("epoch").as_number(), json.at("step").as_number(),
                                  json.at("steps").as_number(), begins),
                     samples});
    } catch (const DataError&) {
      continue;  // the last line may be half written
    }
  }
  return course;
}

// The last ten minutes; where the last complete epoch began before that, since then, because its evaluation takes time
// as well.
const Passed& begin_of_window(const std::vector<Passed>& all) {
  const Passed& last = all.back();
  const double complete = std::floor(last.epochs);
  const auto inside = [&](const Passed& one) {
    return one.time >= last.time - kWindow || (complete >= 1 && one.epochs > complete - 1);
  };
  return *std::ranges::find_if(all, inside);
}

// Lines before these would not change the forecast.
bool hold_the_window(std::string_view steps) {
  const auto [lines, has_begin] = course_in(steps);
  return has_begin || (!lines.empty() && &begin_of_window(lines) != &lines.front());
}

}  // namespace

std::string steps_for_forecast(std::uint64_t size, const ReadPart& read) {
  for (std::uint64_t wanted = kLeastRead;; wanted *= 4) {
    const std::uint64_t most = std::min({wanted, kMostRead, size});
    std::string steps = read(size - most, most);
    if (most == size) return steps;
    steps.erase(0, steps.find('\n') + 1);
    if (most == kMostRead || hold_the_window(steps)) return steps;
  }
}

Forecast forecast_of(std::string_view steps, std::string_view settings) {
  const std::vector<Passed> all = course_in(steps).lines;
  if (all.empty()) throw UsageError("no step of a training was recorded", kMeasureFirst);
  const Passed &begin = begin_of_window(all), &end = all.back();
  const double seconds = end.time - begin.time, epochs = end.epochs - begin.epochs;
  if (seconds < static_cast<double>(kLeastMeasured.count()) || epochs <= 0) {
    throw UsageError(fmt::format("only {} of a training were recorded, which is too little for a forecast",
                                 format_duration(std::chrono::duration<double>(std::max(seconds, 0.0)))),
                     kMeasureFirst);
  }
  const auto wanted = parse_number(configured(settings, "num-epochs"));
  if (!wanted || *wanted <= 0) throw UsageError("train.toml does not say how many epochs the training has");
  return {.samples_per_second = (end.samples - begin.samples) / seconds,
          .measured_seconds = seconds,
          .epochs = *wanted,
          .epochs_done = std::min(end.epochs, *wanted),
          .samples_of_epoch = (end.samples - begin.samples) / epochs};
}

}  // namespace dtrain::board
