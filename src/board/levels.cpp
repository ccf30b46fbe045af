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
  void add(float value) {
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
  float low_ = std::numeric_limits<float>::infinity(), high_ = -std::numeric_limits<float>::infinity();
  std::size_t count_ = 0;
};

template <typename Value>
void append_list(std::string& text, std::string_view name, const std::vector<LevelPoint>& level, const Value& value) {
  fmt::format_to(std::back_inserter(text), "\"{}\":[", name);
  for (const LevelPoint& point : level) {
    if (text.back() != '[') text += ',';
    append_number(text, value(point));
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

std::vector<LevelPoint> level_of(const plot::StepColumns& steps, std::span<const float> values, Axis axis, Rows rows,
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
    fmt::format_to(std::back_inserter(text), "{:.9g}", value);
  } else {
    text += "null";
  }
}

std::string levels_json(const plot::StepColumns& steps, const Window& window) {
  const Rows rows = rows_of(steps, window);
  const bool single = rows.last - rows.first <= window.points;
  std::string text = fmt::format("{{\"rows\":{},\"first\":{},\"last\":{}", steps.size(), rows.first, rows.last);
  std::string columns;
  bool placed = false;
  for (const plot::StepColumn& column : steps.columns()) {
    const std::vector<LevelPoint> level = level_of(steps, column.values, window.axis, rows, window.points);
    if (!placed) {
      text += ',';
      append_list(text, "x", level, [](const LevelPoint& point) { return point.x; });
      text += ',';
      append_list(text, "count", level, [](const LevelPoint& point) { return static_cast<double>(point.count); });
      placed = true;
    }
    if (!columns.empty()) columns += ',';
    columns += Json(column.name).dump() + ":{";
    append_list(columns, "mean", level, [](const LevelPoint& point) { return point.mean; });
    if (!single) {
      columns += ',';
      append_list(columns, "low", level, [](const LevelPoint& point) { return point.low; });
      columns += ',';
      append_list(columns, "high", level, [](const LevelPoint& point) { return point.high; });
    }
    columns += '}';
  }
  if (!placed) text += ",\"x\":[],\"count\":[]";
  return text + ",\"columns\":{" + columns + "}}";
}

}  // namespace dtrain::board
