#include "since_time.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>

#include "plot/step_columns.hpp"

namespace dtrain::cli {
namespace {

// "10m" -> 600 s.
std::optional<std::chrono::seconds> span_of(std::string_view text) {
  constexpr std::string_view kUnits = "smhd";
  constexpr std::int64_t kSeconds[] = {1, 60, 3'600, 86'400}, kMost = 36'500 * kSeconds[3];
  const auto unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const auto count = unit == kUnits.npos ? std::nullopt : parse_integer(text.substr(0, text.size() - 1));
  if (!count || *count < 0 || *count > kMost / kSeconds[unit]) return std::nullopt;
  return std::chrono::seconds(*count * kSeconds[unit]);
}

// "+02:00", "-0330", "+02"; takes it from the end of the text. nullopt: it is none.
std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
  if (text.ends_with('Z') || text.ends_with('z')) {
    text.remove_suffix(1);
    return std::chrono::minutes(0);
  }
  const std::size_t sign = text.find_last_of("+-");
  if (sign == text.npos) return std::chrono::minutes(0);
  const std::string_view offset = text.substr(sign + 1);
  const bool has_colon = offset.size() == 5 && offset[2] == ':';
  if (!has_colon && offset.size() != 2 && offset.size() != 4) return std::nullopt;
  const auto hours = parse_integer(offset.substr(0, 2));
  const auto minutes = offset.size() == 2 ? 0 : parse_integer(offset.substr(has_colon ? 3 : 2));
  if (!hours || !minutes || *hours < 0 || *hours > 23 || *minutes < 0 || *minutes > 59) return std::nullopt;
  const auto size = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  const bool east = text[sign] == '+';
  text = text.substr(0, text.find_last_not_of(' ', sign - 1) + 1);
  return east ? size : -size;
}

std::optional<elastic::WallTime> time_of(std::string_view text) {
  constexpr std::size_t kDate = 10, kMinutes = 5, kSeconds = 19;  // letters
  if (text.size() < kDate) return std::nullopt;
  const std::string_view date = text.substr(0, kDate);
  std::string_view clock = text.substr(kDate);
  const auto offset = take_offset(clock);
  if (!offset || (!clock.empty() && clock.front() != 'T' && clock.front() != 't' && clock.front() != ' '))
    return std::nullopt;
  std::string whole = fmt::format("{}T{}", date, clock.empty() ? "00:00" : clock.substr(1));
  if (whole.size() == kDate + 1 + kMinutes) whole += ":00";
  const auto seconds = plot::parse_time(whole + 'Z');
  if (!seconds) return std::nullopt;
  const auto since_1970 = std::chrono::microseconds(std::llround(*seconds * 1e6));
  const elastic::WallTime time{std::chrono::duration_cast<elastic::WallTime::duration>(since_1970)};
  if (elastic::format_time(time).substr(0, kSeconds) != whole.substr(0, kSeconds)) return std::nullopt;  // 25:00
  return time - *offset;
}

}  // namespace

elastic::WallTime since_time(const std::string& text, elastic::WallTime now, const std::string& option) {
  if (const auto span = span_of(text)) return now - *span;
  if (const auto time = time_of(text)) return *time;
  throw UsageError(fmt::format("{} {}: not a time", option, text),
                   "give a duration as 10m or 2h, or a time as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00");
}

}  // namespace dtrain::cli
