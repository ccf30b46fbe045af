// What a program on another machine writes to a stream, as it comes, for the same stream of this process.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain::cli {

// For a file or a pipe the bytes stay as they are. On a terminal they become whole lines of printable(): a control
// sequence may come in two pieces, each of them harmless. Carriage returns alone end the states of a line that the
// program redraws in place, such as a progress bar: of these one in each kRedrawInterval becomes a line, as in the logs
// of workers, and the last state is the line that the newline ends.
class FarText {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kLongest = 64 << 10;  // bytes; longer lines are split
  static constexpr std::chrono::seconds kRedrawInterval{1};

  explicit FarText(bool on_terminal) : on_terminal_(on_terminal) {}
  // Takes the next bytes, and returns what is to be written now.
  std::string take(std::string_view bytes, Time now);
  // The same at the end of the output: a line that has no end.
  std::string end();

 private:
  const bool on_terminal_;
  std::string rest_;   // the beginning of a line
  Time next_state_{};  // from which the next state of a redrawn line is one
};

}  // namespace dtrain::cli
