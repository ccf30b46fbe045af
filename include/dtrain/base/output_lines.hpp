// Whole lines out of the bytes that a program writes, as they come.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

// A newline ends a line, also with carriage returns before it. Carriage returns alone end the states of a line that the
// program redraws in place, such as a progress bar: of these one in each kRedrawInterval becomes a line. The last state
// is the line that the newline ends.
class OutputLines {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kLongest = 64 << 10;  // bytes; longer lines are split
  static constexpr std::chrono::seconds kRedrawInterval{1};

  // Returns the lines, each with its newline, that these bytes completed.
  std::string add(std::string_view bytes, Time now);
  // The output has ended; returns the rest as a line.
  std::string end();

 private:
  std::string take_states(Time now);

  std::string rest_;
  Time next_state_{};  // from which the next state of a redrawn line is one
};

}  // namespace dtrain
