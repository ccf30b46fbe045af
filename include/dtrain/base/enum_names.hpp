// The texts of an enum's values, in one table beside the enum: for options, JSON, tags and messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// A table is an array: `constexpr EnumName<Colour> kColourNames[] = {{Colour::red, "red"}, ...};`
template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

// The text of a value. The table must have the value.
template <typename Enum, std::size_t N>
std::string enum_name(const EnumName<Enum> (&names)[N], Enum value) {
  return std::string(std::ranges::find(names, value, &EnumName<Enum>::value)->name);
}

// The value of a text; nullopt for a text that is not in the table.
template <typename Enum, std::size_t N>
std::optional<Enum> enum_value(const EnumName<Enum> (&names)[N], std::string_view text) {
  const auto found = std::ranges::find(names, text, &EnumName<Enum>::name);
  return found == std::end(names) ? std::nullopt : std::optional(found->value);
}

// All texts, in the order of the table.
template <typename Enum, std::size_t N>
std::vector<std::string> enum_texts(const EnumName<Enum> (&names)[N]) {
  std::vector<std::string> texts;
  for (const EnumName<Enum>& name : names) texts.emplace_back(name.name);
  return texts;
}

}  // namespace dtrain
