// The course of a training, read from the lines of steps.jsonl into one column for each value: plot draws from it at
// once, and the board while it grows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/step_numbers.hpp>

#include "epoch_progress.hpp"

namespace dtrain::plot {

// "2026-01-31T23:59:59.123456Z", as the records have it, as seconds since 1970. It keeps the fraction, which
// unix_time_of() of base drops, and takes no other form of a time: a long training has millions of lines.
std::optional<double> parse_time(std::string_view text);
double seconds_of_time(const std::string& text);  // the same; throws DataError

// Times of the machine's clock as seconds of training, without those between a stop and the next begin. A clock that
// is set back does not turn the training back.
class TrainingClock {
 public:
  void begins(double time);
  void passes(double time);  // a line of that time was written
  double now() const { return stretches_.empty() ? 0 : at(stretches_.back().end); }
  bool began_by(double time) const { return !stretches_.empty() && time >= stretches_[0].begin; }
  double at(double time) const;  // 0 before the first begin
  // Seconds of training until the last begin before this time.
  double begin_of_start(double time) const;
  std::vector<double> resumed() const;
  std::size_t begins() const { return stretches_.size(); }  // so many times
  // As it was when it had begun so many times and said `now`.
  TrainingClock as_of(std::size_t begins, double now) const;

 private:
  struct Stretch {
    double begin, end;
    double before;  // seconds of training until it began
  };
  const Stretch* stretch_of(double time) const;  // nullptr: there is none

  std::vector<Stretch> stretches_;
};

struct StepColumn {
  std::string name;  // of the value in the file; "speed" for samples a second
  std::vector<double> values{};
};

// Columns are equally long; a line that lacks a value has NaN there. The line that an epoch's end cut off after far
// fewer samples than the line before it has no row of its own: so few samples say nothing, but would stand in a picture
// as a curve that falls to 0. It is a part of the row before it, if that is of the same epoch and start.
class StepColumns {
 public:
  // Lines, oldest first, without their last newline or with it. What is no such line is passed over. `offset`: of the
  // first byte, from the begin of the file.
  void add(std::string_view lines, std::uint64_t offset = 0);
  // Forgets the first rows. What is known of the training stays.
  void drop(std::size_t rows);
  void fit();  // gives back the memory that was kept for lines to come
  // Without rows: for the lines behind `row`, of which `clock` was the state. Has the same columns.
  StepColumns for_lines_behind(std::size_t row, const TrainingClock& clock) const;

  std::size_t size() const { return at_.size(); }
  std::size_t dropped() const { return dropped_; }  // rows before the first one
  bool began() const { return last_time_ > 0; }
  const std::vector<double>& at() const { return at_; }                 // seconds of training
  const std::vector<double>& epochs() const { return epochs_; }         // that were trained
  const std::vector<double>& steps() const { return steps_; }           // StepNumbers of the lines' last steps
  const std::vector<double>& samples() const { return samples_; }       // that a line's values are means of; 0: unknown
  const std::vector<std::uint64_t>& ends() const { return ends_; }      // of the lines in the file, with their newlines
  const std::vector<std::uint32_t>& begins() const { return begins_; }  // of the clock until then
  const std::vector<StepColumn>& columns() const { return columns_; }
  const StepColumn* find(std::string_view name) const;  // nullptr: no line had it
  const TrainingClock& clock() const { return clock_; }
  double most_epochs() const { return most_epochs_; }
  const StepNumbers& step_numbers() const { return numbers_; }  // of all lines
  std::uint64_t samples_seen() const { return samples_seen_; }  // of the last line
  double last_time() const { return last_time_; }               // of the last line, by the machine's clock
  std::size_t damaged() const { return damaged_; }              // lines that were passed over

 private:
  void add_line(std::string_view line, std::uint64_t end);
  void set(std::string_view name, double value);
  bool is_rest() const;
  void join_rest();

  TrainingClock clock_;
  StepNumbers numbers_;
  EpochProgress progress_;
  std::vector<double> at_, epochs_, steps_, samples_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> begins_;
  std::vector<StepColumn> columns_;
  std::optional<double> open_epoch_;  // of the last row, if the line that ends this epoch may become a part of it
  std::size_t dropped_ = 0;
  double most_epochs_ = 0, last_time_ = 0;
  std::uint64_t samples_seen_ = 0;
  std::size_t damaged_ = 0;
};

}  // namespace dtrain::plot
