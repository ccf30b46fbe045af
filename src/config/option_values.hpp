// From the text of one value to its type; a UsageError says only what is wrong with the text, the caller says where it
// stood.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/enum_names.hpp>

#include "option_set.hpp"

namespace dtrain::config {

std::int64_t whole_number_in(const std::string& text, Range range, std::int64_t lowest, std::int64_t highest);

template <typename Integer>
Integer whole_number(const std::string& text, Range range) {
  using Limits = std::numeric_limits<Integer>;
  return static_cast<Integer>(whole_number_in(text, range, Limits::min(), Limits::max()));
}

double real_number(const std::string& text, Range range);
// 1 0 true false yes no on off; `words`: what a refusal says it must be.
bool yes_or_no(const std::string& text, const char* words = "1 or 0");
bool true_or_false(std::string text);  // the same in any case of letters, as Python's True and False
std::string one_of(const std::string& text, std::span<const std::string> choices);
std::string not_empty(const std::string& text);
std::vector<double> number_list(const std::string& text);        // "30,60"; empty: none
std::vector<double> ascending_numbers(const std::string& text);  // the same, each above the one before, and above 0
std::array<float, 3> three_channels(const std::string& text);    // "123.68,116.779,103.939"; one number counts for all
std::array<float, 3> three_numbers(const std::string& text, Range range);  // "3.4445,-4.775,2.0315", each in the range
nn::Shape image_shape(const std::string& text);                            // "3,28,28"

// An option whose value is a number of seconds, at most kMostSeconds.
using Seconds = std::chrono::duration<double>;
inline constexpr double kMostSeconds = 1e7;  // four months; a clock of nanoseconds holds hundreds of such waits
Option& add_seconds(OptionSet& set, std::string flags, Seconds& field, std::string help, Range range);

// Makes the option, whose value names files or is the beginning of their names, refuse a folder.
Option& refuse_folders(Option& option);

// An option whose value is one of the texts of an enum's table, which must outlive the set.
template <typename Enum, std::size_t N>
Option& add_choice(OptionSet& set, std::string flags, Enum& field, const EnumName<Enum> (&names)[N], std::string help) {
  std::string value;
  for (const std::string& text : enum_texts(names)) value += (value.empty() ? "" : "|") + text;
  return set.add_custom(
      std::move(flags), std::move(value), std::move(help),
      [&field, &names](const std::string& text) { field = *enum_value(names, one_of(text, enum_texts(names))); },
      [&field, &names] { return enum_name(names, field); });
}

}  // namespace dtrain::config
