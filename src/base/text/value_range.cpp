#include <dtrain/base/value_range.hpp>

#include <fmt/format.h>

#include <cmath>

namespace dtrain {

std::string in_words(const ValueRange& range) {
  const ValueRange any;
  const bool has_low = range.low > any.low, has_high = range.high < any.high;
  if (range.low_is_out) {
    const std::string low = fmt::format("more than {}", range.low);
    return has_high ? fmt::format("{} and at most {}", low, range.high) : low;
  }
  if (range.high_is_out) return fmt::format("at least {} and less than {}", range.low, range.high);
  if (has_low && has_high) return fmt::format("between {} and {}", range.low, range.high);
  if (has_low) return fmt::format("{} or more", range.low);
  return has_high ? fmt::format("{} or less", range.high) : "";
}

template <typename Number>
static void require(const ValueRange& allowed, const ValueRange& range, Number value, const char* setting) {
  if (allowed.has(static_cast<double>(value))) return;
  throw SettingError(setting, fmt::format("must be {}, not {}", in_words(range), value));
}

void require_in(const ValueRange& range, std::int64_t value, const char* setting) {
  require(range, range, value, setting);
}
void require_in(const ValueRange& range, double value, const char* setting) { require(range, range, value, setting); }

// A value that was written as an end of the range is in it, although the nearest float may lie outside.
void require_in(const ValueRange& range, float value, const char* setting) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const auto rounded = [](double end) {
    return std::abs(end) > kMost ? end : static_cast<double>(static_cast<float>(end));
  };
  ValueRange allowed = range;
  allowed.low = rounded(range.low);
  allowed.high = rounded(range.high);
  require(allowed, range, value, setting);
}

}  // namespace dtrain
