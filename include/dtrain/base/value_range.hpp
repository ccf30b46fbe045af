// Which values a number may have, stated once beside the field: the check, the refusal, the help and the manual page
// are made from it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <dtrain/base/error.hpp>

namespace dtrain {

struct ValueRange {
  double low = std::numeric_limits<double>::lowest();
  double high = std::numeric_limits<double>::max();
  bool low_is_out = false, high_is_out = false;

  constexpr bool has(double value) const {
    return (low_is_out ? value > low : value >= low) && (high_is_out ? value < high : value <= high);
  }
};

constexpr ValueRange at_least(double low) { return {.low = low}; }
constexpr ValueRange more_than(double low) { return {.low = low, .low_is_out = true}; }
constexpr ValueRange between(double low, double high) { return {.low = low, .high = high}; }
constexpr ValueRange from_and_below(double low, double high) { return {.low = low, .high = high, .high_is_out = true}; }

// Threads of one kind: the limit is far above what helps, and below what systems refuse.
inline constexpr ValueRange kThreadRange = between(1, 1024);

// "1 or more", "between 0 and 1", "more than 0 and at most 1", "at least 0 and less than 1"; empty where every value is
// allowed.
std::string in_words(const ValueRange& range);

// A setting's value cannot be meant. Messages of libraries write a setting as "setting 'num-examples'", by the name of
// the option that sets it; the command line shows it as that option.
class SettingError : public UsageError {
 public:
  SettingError(const std::string& setting, const std::string& problem, std::string hint = {})
      : UsageError("setting '" + setting + "': " + problem, std::move(hint)) {}
};

// Throw SettingError for a value outside the range, with the digits of its own type.
void require_in(const ValueRange& range, std::int64_t value, const char* setting);
void require_in(const ValueRange& range, double value, const char* setting);
void require_in(const ValueRange& range, float value, const char* setting);
inline void require_in(const ValueRange& range, int value, const char* setting) {
  require_in(range, std::int64_t{value}, setting);
}

}  // namespace dtrain
