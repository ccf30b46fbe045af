#include "step_levels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

constexpr std::size_t kKept = 8;             // lines that stay in the tail in any case
constexpr std::size_t kMostBlocks = 2048;    // of a run that is not long, and one more
constexpr std::size_t kRowsOfLong = 128;     // of a block of a long one
constexpr std::size_t kMostLines = 200'000;  // read for an answer
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

float as_float(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

}  // namespace

StepLevels::Summary StepLevels::Summary::of(std::span<const double> values) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  Summary summary;
  double low = kMost, high = -kMost;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    summary.sum += value;
    ++summary.count;
  }
  summary.low = summary.count > 0 ? as_float(low) : 0;
  summary.high = summary.count > 0 ? as_float(high) : 0;
  return summary;
}

void StepLevels::Summary::add(const Summary& other) {
  if (other.count == 0) return;
  low = count == 0 ? other.low : std::min(low, other.low);
  high = count == 0 ? other.high : std::max(high, other.high);
  sum += other.sum;
  count += other.count;
}

void StepLevels::add(std::string_view lines, std::uint64_t offset) {
  tail_.add(lines, offset);
  if (tail_.size() >= kKept + rows_of_block_) fold();
}

void StepLevels::fit() {
  const auto fit_all = [](auto&... lists) { (lists.shrink_to_fit(), ...); };
  fit_all(ends_.at, ends_.epochs, ends_.steps, ends_.bytes, ends_.begins);
  for (Column& column : columns_) fit_all(column.sums, column.lows, column.highs, column.counts);
  tail_.fit();
}

// Makes blocks of all rows but the last ones.
void StepLevels::fold() {
  std::size_t done = 0;
  while (tail_.size() - done >= kKept + rows_of_block_) {
    fold_rows(done, done + rows_of_block_);
    done += rows_of_block_;
    const std::size_t most = rows_of_block_ < kRowsOfLong ? kMostBlocks : std::max(kMostBlocks, size() / kRowsOfLong);
    if (blocks() > most && blocks() % 2 == 0) halve();
  }
  tail_.drop(done);
}

void StepLevels::fold_rows(std::size_t first, std::size_t last) {
  ends_.at.push_back(tail_.at()[last - 1]);
  ends_.epochs.push_back(tail_.epochs()[last - 1]);
  ends_.steps.push_back(tail_.steps()[last - 1]);
  ends_.begins.push_back(tail_.begins()[last - 1]);
  ends_.bytes.push_back(tail_.ends()[last - 1]);
  for (const plot::StepColumn& values : tail_.columns()) {
    put(column_of(values.name), blocks() - 1, Summary::of(std::span(values.values).subspan(first, last - first)));
  }
}

StepLevels::Summary StepLevels::summary(const Column& column, std::size_t block) const {
  if (block >= column.sums.size()) return {};
  return {.sum = column.sums[block],
          .low = column.lows[block],
          .high = column.highs[block],
          .count = column.lacks ? column.counts[block] : static_cast<std::uint32_t>(rows_of_block_)};
}

// Behind the last block of the column. What it lacks before this one has no value.
void StepLevels::put(Column& column, std::size_t block, const Summary& summary) const {
  const auto all = static_cast<std::uint32_t>(rows_of_block_);
  if (!column.lacks && (summary.count != all || block != column.sums.size())) {
    column.lacks = true;
    column.counts.assign(column.sums.size(), all);
  }
  const auto append = [block](auto& list, auto value) {
    list.resize(block);
    list.push_back(value);
  };
  append(column.sums, summary.sum);
  append(column.lows, summary.low);
  append(column.highs, summary.high);
  if (column.lacks) append(column.counts, summary.count);
}

StepLevels::Column& StepLevels::column_of(const std::string& name) {
  const auto found = std::ranges::find(columns_, name, &Column::name);
  return found == columns_.end() ? columns_.emplace_back(name) : *found;
}

const StepLevels::Column* StepLevels::find(const std::string& name) const {
  const auto found = std::ranges::find(columns_, name, &Column::name);
  return found == columns_.end() ? nullptr : &*found;
}
// Two blocks become one.
void StepLevels::halve() {
  const std::size_t pairs = blocks() / 2;
  const auto keep_each_second = [pairs](auto& list) {
    for (std::size_t i = 0; i < pairs; ++i) list[i] = list[2 * i + 1];
    list.resize(pairs);
  };
  DTRAIN_CHECK(blocks() == 2 * pairs, "blocks are halved in pairs");
  std::vector<std::vector<Summary>> sums;
  for (const Column& column : columns_) {
    std::vector<Summary>& sum = sums.emplace_back();
    for (std::size_t i = 0; i < pairs; ++i) {
      sum.push_back(summary(column, 2 * i));
      sum.back().add(summary(column, 2 * i + 1));
    }
  }
  keep_each_second(ends_.at);
  keep_each_second(ends_.epochs);
  keep_each_second(ends_.steps);
  keep_each_second(ends_.bytes);
  keep_each_second(ends_.begins);
  rows_of_block_ *= 2;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i] = Column{columns_[i].name};
    for (std::size_t block = 0; block < pairs; ++block) put(columns_[i], block, sums[i][block]);
  }
}

double StepLevels::place(Axis axis, std::size_t block) const {
  return axis == Axis::steps ? ends_.steps[block] : axis == Axis::epochs ? ends_.epochs[block] : ends_.at[block];
}

// The blocks that may have rows inside the window, with a neighbour on either side. Each reaches from the end of the
// one before to its own; a resume may lead back.
StepLevels::Part StepLevels::part_of(const Window& window) const {
  Part part{.first = blocks(), .last = 0};
  double before = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < blocks(); ++i) {
    const double end = place(window.axis, i);
    if (std::max(before, end) >= window.from && std::min(before, end) <= window.to) {
      part.first = std::min(part.first, i);
      part.last = i + 1;
    }
    before = end;
  }
  const bool in_tail = rows_of(tail_, window).last > 0;
  if (part.last == 0 && !in_tail) return {};
  part.first -= std::min<std::size_t>(1, part.first);
  part.last = in_tail ? blocks() : std::min(part.last + 1, blocks());
  return part;
}

std::optional<LinesWanted> StepLevels::lines_for(const Window& window) const {
  const Part part = part_of(window);
  const std::size_t count = part.last - part.first;
  if (count == 0 || count >= window.points / 2 || count * rows_of_block_ > kMostLines) return std::nullopt;
  const std::uint64_t end = shows_tail(part) ? tail_.ends().back() : ends_.bytes[part.last - 1];
  if (part.first == 0) return LinesWanted{.end = end, .rows = tail_.for_lines_behind(0, {})};
  const std::size_t before = part.first - 1;
  const plot::TrainingClock clock = tail_.clock().as_of(ends_.begins[before], ends_.at[before]);
  return LinesWanted{
      .begin = ends_.bytes[before], .end = end, .rows = tail_.for_lines_behind(part.first * rows_of_block_, clock)};
}

Levels::Column StepLevels::points_of(const plot::StepColumn& values, const Window& window, Part part) const {
  Levels::Column column{values.name};
  const auto put_point = [&](const Summary& sum, double x, std::size_t rows) {
    LevelPoint point{.x = x, .mean = kNone, .low = kNone, .high = kNone, .count = rows};
    if (sum.count > 0) {
      point.mean = sum.sum / sum.count;
      point.low = sum.low;
      point.high = sum.high;
    }
    column.points.push_back(point);
  };
  const Column* const known = find(values.name);
  const std::size_t count = part.last - part.first;
  const std::size_t parts = std::min(count, window.points - (shows_tail(part) ? 1 : 0));  // the tail is one more
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = part.first + i * count / parts, end = part.first + (i + 1) * count / parts;
    Summary sum;
    for (std::size_t block = begin; known && block < end; ++block) sum.add(summary(*known, block));
    put_point(sum, place(window.axis, end - 1), (end - begin) * rows_of_block_);
  }
  if (shows_tail(part)) {
    const Rows all{0, tail_.size()};
    put_point(Summary::of(values.values), level_of(tail_, values.values, window.axis, all, 1).front().x, tail_.size());
  }
  return column;
}

Levels StepLevels::levels(const Window& window) const {
  if (blocks() == 0) return levels_of(tail_, window);
  const Part part = part_of(window);
  Levels levels{.rows = size(),
                .range = {part.first * rows_of_block_, shows_tail(part) ? size() : part.last * rows_of_block_}};
  for (const plot::StepColumn& column : tail_.columns()) levels.columns.push_back(points_of(column, window, part));
  return levels;
}

}  // namespace dtrain::board
