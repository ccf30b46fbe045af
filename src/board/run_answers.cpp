#include "run_answers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/event_kind.hpp>
#include <dtrain/data/image.hpp>

#include "board/curves/levels.hpp"
#include "evaluation_answers.hpp"
#include "explain.hpp"
#include "plot/drawing_raster.hpp"
#include "plot/plot_figure.hpp"
#include "reply.hpp"

namespace dtrain::board {
namespace {

constexpr std::size_t kMostEvents = 5000;
constexpr double kMostPoints = 20'000;

Axis axis_of(const Target& target) {
  const std::string name = target.text("axis");
  if (name.empty() || name == "steps") return Axis::steps;
  if (name == "epochs") return Axis::epochs;
  if (name == "time") return Axis::time;
  throw UsageError(fmt::format("axis={}: none of steps, epochs and time", name));
}

Window window_of(const Target& target) {
  Window window{.axis = axis_of(target)};
  window.from = target.number("from").value_or(window.from);
  window.to = target.number("to").value_or(window.to);
  const double points = target.number("points").value_or(static_cast<double>(window.points));
  window.points = static_cast<std::size_t>(std::clamp(points, 2.0, kMostPoints));
  return window;
}

// Validations stand in the events; where they belong on the axis follows from epoch and time.
std::string validations_json(const Run& run, const Window& window) {
  const plot::StepColumns& steps = run.steps().tail();
  std::string text;
  for (const Json& event : run.events()) {
    if (event_kind(event) != EventKind::evaluation || !run.is_of_training(event)) continue;
    const double epochs = counted_from_one(event, "epoch");
    const auto time = plot::parse_time(member_text(event, "time"));
    const double x = window.axis == Axis::epochs  ? epochs
                     : window.axis == Axis::steps ? steps.step_numbers().last_of(epochs - 1)
                                                  : steps.clock().at(time.value_or(0));
    if (x < window.from || x > window.to) continue;
    text += text.empty() ? "{\"x\":" : ",{\"x\":";
    append_number(text, x);
    const Json figures = validation_figures(event);
    for (const auto& [name, value] : figures.as_object()) {
      text += fmt::format(",\"{}\":", name);
      append_number(text, value.is_number() ? value.as_number() : std::numeric_limits<double>::quiet_NaN());
    }
    text += '}';
  }
  return "[" + text + "]";
}

// Changes of the members of a job, on the axis of time: events know no step.
Json changes_of(const Run& run, const Window& window) {
  Json list = Json::array();
  if (window.axis != Axis::time) return list;
  for (const Json& event : run.events()) {
    if (event_kind(event) != EventKind::generation || !run.is_of_training(event)) continue;
    const auto time = plot::parse_time(member_text(event, "time"));
    const double x = run.steps().tail().clock().at(time.value_or(0));
    if (x < window.from || x > window.to) continue;
    list.push_back(Json::object(
        {{"x", x}, {"workers", member_number(event, "workers")}, {"reason", member_text(event, "reason")}}));
  }
  return list;
}

const char* weight_name(Weight weight) {
  return weight == Weight::trouble ? "trouble" : weight == Weight::change ? "change" : "detail";
}

}  // namespace

Series::Series(const Run& run, const Target& target)
    : window_(window_of(target)),
      path_(run.steps_path()),
      levels_(run.steps().levels(window_)),
      wanted_(run.steps().lines_for(window_)),
      more_(",\"validations\":" + validations_json(run, window_) + ",\"changes\":" + changes_of(run, window_).dump() +
            ",\"resumed\":[") {
  for (const double at : run.steps().tail().clock().resumed()) {
    if (more_.back() != '[') more_ += ',';
    append_rounded(more_, at);
  }
}

net::HttpResponse Series::answer(Files& files) {
  if (wanted_) {
    wanted_->rows.add(files.read(path_, wanted_->begin, wanted_->end - wanted_->begin), wanted_->begin);
    if (wanted_->rows.size() > 0) {  // else the file is another one, or away: what is in memory is shown
      const std::size_t rows = levels_.rows;
      levels_ = levels_of(wanted_->rows, window_);
      levels_.rows = rows;
    }
  }
  std::string text = levels_json(levels_);
  text.pop_back();
  return reply(text + more_ + "]}", kJsonType);
}

Json events_of(const Run& run, const Target& target) {
  const std::vector<Json>& events = run.events();
  const std::size_t first = events.size() - std::min(events.size(), kMostEvents);
  const auto after = target.number("after");
  Json list = Json::array();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (after && static_cast<double>(i) <= *after) continue;
    if (i < first && weight_of(events[i]) == Weight::detail) continue;  // of those, only the last ones
    list.push_back(Json::object({{"number", std::uint64_t{i}},
                                 {"at", plot::parse_time(member_text(events[i], "time")).value_or(0)},
                                 {"kind", member_text(events[i], "event")},
                                 {"text", explain(events[i])},
                                 {"weight", weight_name(weight_of(events[i]))},
                                 {"raw", events[i]}}));
  }
  return Json::object({{"total", std::uint64_t{events.size()}}, {"first", std::uint64_t{first}}, {"events", list}});
}

net::HttpResponse picture_of(const std::string& folder, const std::string& name, const std::vector<Json>& events,
                             Files& files, const Target& target) {
  plot::StepColumns steps;
  Tail tail(folder + "/steps.jsonl");
  for (Tail::News news{.more = true}; news.more;) {
    news = tail.next(files);
    if (news.restarted) steps = {};
    steps.add(news.lines);
  }
  const plot::Drawing drawing = plot::draw_run(plot::curves_of(steps, events), name);
  if (target.text("format") != "png") return reply(plot::to_svg(drawing), kSvgType);
  return reply(data::encode_image(plot::to_image(drawing, plot::kPixelsAPoint), data::Encoding::png), kPngType);
}

}  // namespace dtrain::board
