// One redrawn line on a terminal: the amount done, facts of the work, the rate, the time left and a bar. Without a
// terminal it shows nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/reporter.hpp>

namespace dtrain::job {

struct ProgressFacts {
  std::string_view what;
  std::uint64_t done = 0, total = 0;  // total 0: unknown
  std::string_view unit;              // in the plural; of "bytes" sizes are shown
  double rate = 0;                    // units a second; 0: unknown
  std::vector<std::string> details{};
};
// At most so many columns, as long as the amount fits: what does not fit is left out. The details have the first claim,
// then the time left, the rate, and the bar, which takes the rest of the line.
std::string progress_text(const ProgressFacts& facts, std::size_t columns);

class ProgressLine {
 public:
  explicit ProgressLine(Reporter& reporter) : reporter_(reporter) {}
  ~ProgressLine() { reporter_.progress({}); }
  ProgressLine(const ProgressLine&) = delete;

  // Redraws at most ten times a second.
  void show(std::string_view what, std::uint64_t done, std::uint64_t total, std::string_view unit,
            std::vector<std::string> details = {});

 private:
  using Clock = std::chrono::steady_clock;
  void restart(std::string_view what, std::uint64_t done, Clock::time_point now);

  Reporter& reporter_;
  std::string what_;
  std::uint64_t first_done_ = 0;  // amount done when this display began
  Clock::time_point begin_, drawn_;
};

}  // namespace dtrain::job
