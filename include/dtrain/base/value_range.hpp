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
  bool low_is_out = false;

  constexpr bool has(double value) const { return (low_is_out ? value > low : value >= low) && value <= high; }
};

constexpr ValueRange at_least(double low) { return {.low = low}; }
constexpr ValueRange more_than(double low) { return {.low = low, .low_is_out = true}; }
constexpr ValueRange between(double low, double high) { return {.low = low, .high = high}; }

// Threads of one kind: the limit is far above what helps, and below what systems refuse.
inline constexpr ValueRange kThreadRange = between(1, 1024);

// "1 or more", "between 0 and 1", "more than 0 and at most 1"; empty where every value is allowed.
std::string in_words(const ValueRange& range);

// A parameter's value cannot be meant. what() begins with the parameter's name, which is the name of the option that
// sets it; the command line shows it as that option.
class ParameterError : public UsageError {
 public:
  ParameterError(const std::string& parameter, const std::string& problem, std::string hint = {})
      : UsageError(parameter + ": " + problem, std::move(hint)) {}
};

// Throw ParameterError for a value outside the range, with the digits of its own type.
void require_in(const ValueRange& range, std::int64_t value, const char* parameter);
void require_in(const ValueRange& range, double value, const char* parameter);
void require_in(const ValueRange& range, float value, const char* parameter);
inline void require_in(const ValueRange& range, int value, const char* parameter) {
  require_in(range, std::int64_t{value}, parameter);
}

}  // namespace dtrain
