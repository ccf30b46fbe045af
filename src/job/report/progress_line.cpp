#include "progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::job {
namespace {

constexpr int kBarWidth = 24;
constexpr auto kRedraw = std::chrono::milliseconds(100);

std::string bar(double share) {
  const int full = static_cast<int>(kBarWidth * std::clamp(share, 0.0, 1.0));
  return fmt::format("[{:=<{}}{:{}}]", "", full, "", kBarWidth - full);
}

std::string amount(double value, std::string_view unit) {
  return unit == "bytes" ? format_bytes(static_cast<std::uint64_t>(value)) : fmt::format("{:.0f}", value);
}

}  // namespace

void ProgressLine::restart(std::string_view what, std::uint64_t done, Clock::time_point now) {
  what_ = what;
  first_done_ = done;
  begin_ = now;
}

void ProgressLine::show(std::string_view what, std::uint64_t done, std::uint64_t total, std::string_view unit,
                        std::string_view tail) {
  if (!reporter_.draws_progress()) return;
  const auto now = Clock::now();
  if (what != what_ || done < first_done_) restart(what, done, now);
  if (now - drawn_ < kRedraw) return;
  drawn_ = now;
  reporter_.progress(line(done, total, unit, tail));
}

std::string ProgressLine::line(std::uint64_t done, std::uint64_t total, std::string_view unit,
                               std::string_view tail) const {
  const double seconds = std::chrono::duration<double>(drawn_ - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_done_) / seconds : 0;
  std::string text = what_;
  if (total > 0) {
    const double share = static_cast<double>(done) / static_cast<double>(total);
    text += fmt::format(" {} {:3.0f} %", bar(share), 100 * share);
  }
  text += fmt::format(" {}", amount(static_cast<double>(done), unit));
  if (rate > 0) text += fmt::format(" {} {}/s", amount(rate, unit), unit);
  if (rate > 0 && total > done) {
    text += " ETA " + format_duration(std::chrono::duration<double>(static_cast<double>(total - done) / rate));
  }
  if (!tail.empty()) text += fmt::format(" {}", tail);
  return text;
}

}  // namespace dtrain::job
