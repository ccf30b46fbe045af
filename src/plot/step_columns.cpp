#include "step_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <dtrain/base/error.hpp>

#include "flat_object.hpp"

namespace dtrain::plot {
namespace {

constexpr std::size_t kMostColumns = 64;
constexpr double kFarFewer = 8;  // times fewer samples
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The number of exactly these digits.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) return std::nullopt;
  int number = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

std::optional<double> fraction_of(std::string_view text) {  // ".123456"
  if (text.empty()) return 0.0;
  if (text.front() != '.' || text.size() < 2) return std::nullopt;
  double value = 0, unit = 1;
  for (const char c : text.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    unit /= 10;
    value += unit * (c - '0');
  }
  return value;
}

// What the members of one line say of its place; the others are values.
struct Place {
  std::optional<double> time;
  double epoch = -1, step = -1, steps = 0, samples = 0, seconds = 0;
  bool begins = false;
  // The member that has this name, or null for one that is a value.
  double* find(std::string_view name) {
    if (name == "epoch") return &epoch;
    if (name == "step") return &step;
    if (name == "steps") return &steps;
    if (name == "samples") return &samples;
    if (name == "seconds") return &seconds;
    return nullptr;
  }
};

}  // namespace

std::optional<double> parse_time(std::string_view text) {
  using namespace std::chrono;
  const auto year = digits_at(text, 0, 4), month_number = digits_at(text, 5, 2), day_number = digits_at(text, 8, 2);
  const auto hour = digits_at(text, 11, 2), minute = digits_at(text, 14, 2), second = digits_at(text, 17, 2);
  if (!year || !month_number || !day_number || !hour || !minute || !second || text.size() < 20 || text.back() != 'Z')
    return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') return std::nullopt;
  const year_month_day date{std::chrono::year(*year), month(static_cast<unsigned>(*month_number)),
                            day(static_cast<unsigned>(*day_number))};
  const auto fraction = fraction_of(text.substr(19, text.size() - 20));
  if (!date.ok() || !fraction) return std::nullopt;
  const auto whole =
      sys_days(date).time_since_epoch() + hours(*hour) + minutes(*minute) + std::chrono::seconds(*second);
  return static_cast<double>(duration_cast<std::chrono::seconds>(whole).count()) + *fraction;
}

double seconds_of_time(const std::string& text) {
  if (const auto time = parse_time(text)) return *time;
  throw DataError(fmt::format("'{}' is no time", text));
}

void TrainingClock::begins(double time) { stretches_.push_back({time, time, now()}); }

void TrainingClock::passes(double time) {
  if (stretches_.empty()) begins(time);
  stretches_.back().end = std::max(stretches_.back().end, time);
}

const TrainingClock::Stretch* TrainingClock::stretch_of(double time) const {
  if (stretches_.empty()) return nullptr;
  const Stretch* in = &stretches_[0];
  for (const Stretch& stretch : stretches_) {
    if (stretch.begin <= time) in = &stretch;
  }
  return in;
}

double TrainingClock::at(double time) const {
  const Stretch* const in = stretch_of(time);
  return in ? in->before + std::clamp(time, in->begin, in->end) - in->begin : 0;
}

double TrainingClock::begin_of_start(double time) const {
  const Stretch* const in = stretch_of(time);
  return in ? in->before : 0;
}

std::vector<double> TrainingClock::resumed() const {
  std::vector<double> times;
  for (std::size_t i = 1; i < stretches_.size(); ++i) times.push_back(stretches_[i].before);
  return times;
}

TrainingClock TrainingClock::as_of(std::size_t begins, double now) const {
  TrainingClock clock = *this;
  clock.stretches_.resize(std::min(begins, stretches_.size()));
  if (!clock.stretches_.empty()) {
    Stretch& last = clock.stretches_.back();
    last.end = last.begin + std::max(0.0, now - last.before);
  }
  return clock;
}

void StepColumns::add(std::string_view lines, std::uint64_t offset) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::size_t next = std::min(end + 1, lines.size());
    offset += next;
    if (end > 0) add_line(lines.substr(0, end), offset);
    lines.remove_prefix(next);
  }
}

void StepColumns::drop(std::size_t rows) {
  const auto drop_of = [&](auto& list) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(rows, list.size())));
  };
  dropped_ += std::min(rows, size());
  drop_of(at_);
  drop_of(epochs_);
  drop_of(steps_);
  drop_of(samples_);
  drop_of(ends_);
  drop_of(begins_);
  for (StepColumn& column : columns_) drop_of(column.values);
}

void StepColumns::fit() {
  const auto fit_all = [](auto&... lists) { (lists.shrink_to_fit(), ...); };
  fit_all(at_, epochs_, steps_, samples_, ends_, begins_);
  for (StepColumn& column : columns_) column.values.shrink_to_fit();
}

StepColumns StepColumns::for_lines_behind(std::size_t row, const TrainingClock& clock) const {
  StepColumns lines;
  lines.clock_ = clock;
  lines.numbers_ = numbers_.as_of(clock.begins());
  lines.progress_ = progress_.as_of(clock.begins());
  lines.dropped_ = row;
  for (const StepColumn& column : columns_) lines.columns_.emplace_back(column.name);
  return lines;
}

void StepColumns::add_line(std::string_view line, std::uint64_t end) {
  Place place;
  const std::size_t row = at_.size();
  const auto drop = [&] {
    for (StepColumn& column : columns_) column.values.resize(std::min(column.values.size(), row));
  };
  const bool whole = FlatObjectReader(line).read(
      [&](std::string_view name, double value) {
        if (double* const member = place.find(name)) {
          *member = value;
        } else if (name == "samples_seen") {
          samples_seen_ = value >= 0 ? static_cast<std::uint64_t>(value) : 0;
        } else {
          set(name, value);
        }
      },
      [&](std::string_view name, std::string_view word) {
        if (name == "time") place.time = parse_time(word);
        if (name == "begins" && word == "true") place.begins = true;
      });
  if (!whole || !place.time) {
    ++damaged_;
    return drop();
  }
  last_time_ = *place.time;
  if (place.begins) {
    clock_.begins(*place.time);
    open_epoch_.reset();
    return drop();
  }
  clock_.passes(*place.time);
  if (place.seconds > 0) set("speed", place.samples / place.seconds);
  const auto begins = static_cast<std::uint32_t>(clock_.begins());
  const bool counted = place.epoch >= 0 && place.step >= 0 && place.steps > 0;
  const double epochs = counted ? progress_.add(place.epoch, place.step, place.steps, begins) : 0;
  most_epochs_ = std::max(most_epochs_, epochs);
  at_.push_back(clock_.now());
  epochs_.push_back(epochs);
  steps_.push_back(counted ? numbers_.add(place.epoch, place.step, place.steps, begins)
                           : static_cast<double>(dropped_ + row + 1));
  samples_.push_back(std::max(0.0, place.samples));
  ends_.push_back(end);
  begins_.push_back(begins);
  for (StepColumn& column : columns_) column.values.resize(row + 1, kNone);
  const bool joins = counted && open_epoch_ == place.epoch && place.step + 1 >= place.steps && is_rest();
  if (joins) join_rest();
  open_epoch_ = counted && !joins ? std::optional(place.epoch) : std::nullopt;
}

// Whether the last row has far fewer samples than the one before it, and the same values.
bool StepColumns::is_rest() const {
  const std::size_t last = at_.size() - 1;
  if (last == 0 || samples_[last] <= 0 || samples_[last] * kFarFewer >= samples_[last - 1]) return false;
  return std::ranges::all_of(columns_, [last](const StepColumn& column) {
    return std::isfinite(column.values[last - 1]) == std::isfinite(column.values[last]);
  });
}

// Makes one row of the last two. The values are means over samples, besides those that a line has of its last step.
void StepColumns::join_rest() {
  const auto without_the_one_before = [](auto& list) { list.erase(list.end() - 2); };
  const double rest = samples_.back(), before = samples_[samples_.size() - 2];
  for (StepColumn& column : columns_) {
    const double own = column.values.back(), other = column.values[column.values.size() - 2];
    without_the_one_before(column.values);
    if (column.name == "learning_rate" || column.name == "gradient_norm") continue;
    const bool is_speed = column.name == "speed";  // a mean over time
    column.values.back() =
        is_speed ? (before + rest) / (before / other + rest / own) : (before * other + rest * own) / (before + rest);
  }
  without_the_one_before(at_);
  without_the_one_before(epochs_);
  without_the_one_before(steps_);
  without_the_one_before(samples_);
  without_the_one_before(ends_);
  without_the_one_before(begins_);
  samples_.back() = before + rest;
}

void StepColumns::set(std::string_view name, double value) {
  const auto found = std::ranges::find(columns_, name, &StepColumn::name);
  if (found == columns_.end() && columns_.size() == kMostColumns) return;
  StepColumn& column = found == columns_.end() ? columns_.emplace_back(std::string(name)) : *found;
  column.values.resize(at_.size(), kNone);
  column.values.push_back(value);
}

const StepColumn* StepColumns::find(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &StepColumn::name);
  return found == columns_.end() ? nullptr : &*found;
}

}  // namespace dtrain::plot
