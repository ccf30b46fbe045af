#include <dtrain/base/value_range.hpp>

#include <fmt/format.h>

namespace dtrain {

std::string in_words(const ValueRange& range) {
  const ValueRange any;
  const bool has_low = range.low > any.low, has_high = range.high < any.high;
  if (range.low_is_out) {
    const std::string low = fmt::format("more than {}", range.low);
    return has_high ? fmt::format("{} and at most {}", low, range.high) : low;
  }
  if (has_low && has_high) return fmt::format("between {} and {}", range.low, range.high);
  if (has_low) return fmt::format("{} or more", range.low);
  return has_high ? fmt::format("{} or less", range.high) : "";
}

template <typename Number>
static void require(const ValueRange& range, Number value, const char* parameter) {
  if (range.has(static_cast<double>(value))) return;
  throw ParameterError(parameter, fmt::format("must be {}, not {}", in_words(range), value));
}

void require_in(const ValueRange& range, std::int64_t value, const char* parameter) {
  require(range, value, parameter);
}
void require_in(const ValueRange& range, double value, const char* parameter) { require(range, value, parameter); }
// A float that was written as the end of the range is in it, although its value as a double may be outside.
void require_in(const ValueRange& range, float value, const char* parameter) {
  const auto rounded = [](double end) { return static_cast<double>(static_cast<float>(end)); };
  const bool has = range.has(rounded(range.low) == static_cast<double>(value)    ? range.low
                             : rounded(range.high) == static_cast<double>(value) ? range.high
                                                                                 : static_cast<double>(value));
  if (!has) require(range, value, parameter);
}

}  // namespace dtrain
