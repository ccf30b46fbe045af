// One redrawn line on a terminal: a bar, the amount done, the rate and the time left. Without a terminal it shows
// nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <dtrain/base/reporter.hpp>

namespace dtrain::job {

class ProgressLine {
 public:
  explicit ProgressLine(Reporter& reporter) : reporter_(reporter) {}
  ~ProgressLine() { reporter_.progress({}); }
  ProgressLine(const ProgressLine&) = delete;

  // Redraws at most ten times a second. total 0: unknown. `tail` stands at the end of the line.
  void show(std::string_view what, std::uint64_t done, std::uint64_t total, std::string_view unit,
            std::string_view tail = {});

 private:
  using Clock = std::chrono::steady_clock;
  void restart(std::string_view what, std::uint64_t done, Clock::time_point now);
  std::string line(std::uint64_t done, std::uint64_t total, std::string_view unit, std::string_view tail) const;

  Reporter& reporter_;
  std::string what_;
  std::uint64_t first_done_ = 0;  // amount done when this display began
  Clock::time_point begin_, drawn_;
};

}  // namespace dtrain::job
