#include "levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <dtrain/base/json.hpp>

namespace dtrain::board {
namespace {

double place_of(const plot::StepColumns& steps, Axis axis, std::size_t row) {
  switch (axis) {
    case Axis::steps:
      return steps.steps()[row];
    case Axis::epochs:
      return steps.epochs()[row];
    case Axis::time:
      return steps.at()[row];
  }
  return 0;
}

class Mean {
 public:
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
    ++count_;
  }
  void put(LevelPoint& point) const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    point.mean = count_ > 0 ? sum_ / static_cast<double>(count_) : kNone;
    point.low = count_ > 0 ? low_ : kNone;
    point.high = count_ > 0 ? high_ : kNone;
  }

 private:
  double sum_ = 0;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
  std::size_t count_ = 0;
};

// Steps are whole numbers and keep all their digits; times and epochs are rounded.
void append_place(std::string& text, double value) {
  if (value == std::floor(value))
    append_number(text, value);
  else
    append_rounded(text, value);
}

template <typename Value>
void append_list(std::string& text, std::string_view name, const std::vector<LevelPoint>& level, const Value& value,
                 void (*append)(std::string&, double)) {
  fmt::format_to(std::back_inserter(text), "\"{}\":[", name);
  for (const LevelPoint& point : level) {
    if (text.back() != '[') text += ',';
    append(text, value(point));
  }
  text += ']';
}

}  // namespace

Rows rows_of(const plot::StepColumns& steps, const Window& window) {
  std::size_t first = steps.size(), last = 0;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    const double x = place_of(steps, window.axis, row);
    if (x < window.from || x > window.to) continue;
    first = std::min(first, row);
    last = row + 1;
  }
  if (last == 0) return {};
  return {first - std::min<std::size_t>(first, 1), std::min(last + 1, steps.size())};
}

std::vector<LevelPoint> level_of(const plot::StepColumns& steps, std::span<const double> values, Axis axis, Rows rows,
                                 std::size_t points) {
  std::vector<LevelPoint> level;
  const std::size_t count = rows.last - rows.first, parts = std::min(count, std::max<std::size_t>(points, 1));
  level.reserve(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = rows.first + part * count / parts, end = rows.first + (part + 1) * count / parts;
    Mean mean;
    for (std::size_t row = begin; row < end; ++row) mean.add(values[row]);
    LevelPoint point{.x = place_of(steps, axis, end - 1), .count = end - begin};
    mean.put(point);
    level.push_back(point);
  }
  return level;
}

void append_number(std::string& text, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(text), "{}", value);
  } else {
    text += "null";
  }
}

void append_rounded(std::string& text, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(text), "{:.9g}", value);
  } else {
    text += "null";
  }
}

Levels levels_of(const plot::StepColumns& steps, const Window& window) {
  const Rows rows = rows_of(steps, window);
  Levels levels{.rows = steps.dropped() + steps.size(),
                .range = {steps.dropped() + rows.first, steps.dropped() + rows.last},
                .single = rows.last - rows.first <= window.points};
  for (const plot::StepColumn& column : steps.columns())
    levels.columns.push_back({column.name, level_of(steps, column.values, window.axis, rows, window.points)});
  return levels;
}

std::string levels_json(const Levels& levels) {
  std::string text =
      fmt::format("{{\"rows\":{},\"first\":{},\"last\":{},", levels.rows, levels.range.first, levels.range.last);
  static const std::vector<LevelPoint> none;
  const std::vector<LevelPoint>& places = levels.columns.empty() ? none : levels.columns.front().points;
  append_list(
      text, "x", places, [](const LevelPoint& point) { return point.x; }, append_place);
  text += ',';
  append_list(
      text, "count", places, [](const LevelPoint& point) { return static_cast<double>(point.count); }, append_number);
  text += ",\"columns\":{";
  for (const Levels::Column& column : levels.columns) {
    if (text.back() != '{') text += ',';
    text += Json(column.name).dump() + ":{";
    text += "\"mean\":[";
    for (const LevelPoint& point : column.points) {
      if (text.back() != '[') text += ',';
      const bool as_written = point.count == 1 && column.name != "speed";  // speeds are computed
      as_written ? append_number(text, point.mean) : append_rounded(text, point.mean);
    }
    text += ']';
    if (!levels.single) {
      text += ',';
      append_list(
          text, "low", column.points, [](const LevelPoint& point) { return point.low; }, append_rounded);
      text += ',';
      append_list(
          text, "high", column.points, [](const LevelPoint& point) { return point.high; }, append_rounded);
    }
    text += '}';
  }
  return text + "}}";
}

}  // namespace dtrain::board
