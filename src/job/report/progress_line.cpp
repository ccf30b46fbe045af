#include "progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/text.hpp>

namespace dtrain::job {
namespace {

constexpr std::size_t kShortestBar = 4, kLongestBar = 24;  // between its brackets
constexpr auto kRedraw = std::chrono::milliseconds(100);

std::string bar(double share, std::size_t width) {
  const auto full = static_cast<std::size_t>(static_cast<double>(width) * share);
  return fmt::format(" [{:=<{}}{:{}}]", "", full, "", width - full);
}

// "step 51/63", "51 steps", "1.5 MiB/3.0 MiB"
std::string amount_text(const ProgressFacts& facts) {
  if (facts.unit == "bytes") {
    const std::string done = format_bytes(facts.done);
    return facts.total > 0 ? fmt::format("{}/{}", done, format_bytes(facts.total)) : done;
  }
  if (facts.total == 0) return fmt::format("{} {}", facts.done, facts.unit);
  const std::string_view one = facts.unit.ends_with('s') ? facts.unit.substr(0, facts.unit.size() - 1) : facts.unit;
  return fmt::format("{} {}/{}", one, facts.done, facts.total);
}

std::string rate_text(double rate, std::string_view unit) {
  if (unit == "bytes") return format_bytes(static_cast<std::uint64_t>(rate)) + "/s";
  return rate < 10 ? fmt::format("{:.3g} {}/s", rate, unit) : fmt::format("{:.0f} {}/s", rate, unit);
}

// Takes the room of the line where the fact fits.
std::string fitting(const std::string& fact, std::size_t& room) {
  if (fact.empty() || fact.size() + 1 > room) return {};
  room -= fact.size() + 1;
  return " " + fact;
}

std::string bar_text(double share, std::size_t room) {
  constexpr std::size_t kBrackets = 3, kPercent = 6;  // each with a blank before it
  const std::string percent = fmt::format(" {:3.0f} %", 100 * share);
  if (room >= kBrackets + kShortestBar + kPercent)
    return bar(share, std::min(kLongestBar, room - kBrackets - kPercent)) + percent;
  return room >= kBrackets + kShortestBar ? bar(share, room - kBrackets) : std::string();
}

}  // namespace

std::string progress_text(const ProgressFacts& facts, std::size_t columns) {
  std::string text = fmt::format("{} {}", facts.what, amount_text(facts));
  std::size_t room = columns - std::min(columns, text.size());
  for (const std::string& detail : facts.details) text += fitting(detail, room);
  std::string left, rate;
  if (facts.rate > 0 && facts.total > facts.done) {
    const double seconds = static_cast<double>(facts.total - facts.done) / facts.rate;
    left = fitting("ETA " + format_duration(std::chrono::duration<double>(seconds)), room);
  }
  if (facts.rate > 0) rate = fitting(rate_text(facts.rate, facts.unit), room);
  text += rate + left;
  if (facts.total == 0) return text;
  return text +
         bar_text(std::clamp(static_cast<double>(facts.done) / static_cast<double>(facts.total), 0.0, 1.0), room);
}

void ProgressLine::restart(std::string_view what, std::uint64_t done, Clock::time_point now) {
  what_ = what;
  first_done_ = done;
  begin_ = now;
}

void ProgressLine::show(std::string_view what, std::uint64_t done, std::uint64_t total, std::string_view unit,
                        std::vector<std::string> details) {
  if (!reporter_.draws_progress()) return;
  const auto now = Clock::now();
  if (what != what_ || done < first_done_) restart(what, done, now);
  if (now - drawn_ < kRedraw) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_done_) / seconds : 0;
  // A terminal whose last column is written to may begin a new line.
  const auto columns = static_cast<std::size_t>(std::max(1, reporter_.columns() - 1));
  reporter_.progress(progress_text({what, done, total, unit, rate, std::move(details)}, columns));
}

}  // namespace dtrain::job
