#include "mxnet_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::nn {
namespace {

// Attributes of the executor, of no meaning here.
constexpr const char* kAnnotations[] = {"ctx_group", "mirror_stage", "force_mirroring", "name"};

constexpr const char* kFactors[] = {kMxnetRateFactor, "__wd_mult__", "lr_mult", "wd_mult"};

std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return c == ' '; });
  return text;
}

bool same_value(const std::string& value, const char* text) {
  const auto a = parse_number(value), b = parse_number(text);
  return a && b ? *a == *b : without_blanks(value) == text;
}

std::optional<int> parse_int(std::string_view text) {
  const auto value = parse_integer(trim(text));
  if (!value || !std::in_range<int>(*value)) return std::nullopt;
  return static_cast<int>(*value);
}

// "(3, 3)", "[3,3]"
std::optional<std::array<int, 2>> parse_pair(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || std::string_view("([").find(text.front()) == std::string_view::npos ||
      std::string_view(")]").find(text.back()) == std::string_view::npos) {
    return std::nullopt;
  }
  const std::vector<std::string> parts = split(text.substr(1, text.size() - 2), ',');
  if (parts.size() != 2) return std::nullopt;
  const auto first = parse_int(parts[0]), second = parse_int(parts[1]);
  if (!first || !second) return std::nullopt;
  return std::array{*first, *second};
}

bool is_hidden(std::string_view key) { return key.starts_with("__") && key.ends_with("__"); }

}  // namespace

void AttributeReader::operator()(const char* key, int& value) {
  const auto text = find(key);
  if (!text) return;
  const auto number = parse_int(*text);
  if (!number) refuse_value(key, *text);
  value = *number;
}

void AttributeReader::operator()(const char* key, bool& value) {
  const auto text = find(key);
  if (!text) return;
  const bool yes = *text == "True" || *text == "true" || *text == "1";
  const bool no = *text == "False" || *text == "false" || *text == "0";
  if (!yes && !no) refuse_value(key, *text);
  value = yes;
}

void AttributeReader::operator()(const char* key, float& value) {
  const auto text = find(key);
  if (!text) return;
  const auto number = parse_number(*text);
  constexpr double largest = std::numeric_limits<float>::max();
  if (!number || *number > largest || *number < -largest) refuse_value(key, *text);
  value = static_cast<float>(*number);
}

void AttributeReader::negated(const char* key, bool& value) {
  bool opposite = !value;
  (*this)(key, opposite);
  value = !opposite;
}

void AttributeReader::pair(const char* key, int& h, int& w) {
  const auto text = find(key);
  if (!text || without_blanks(*text) == "()") return;
  const auto numbers = parse_pair(*text);
  if (!numbers) refuse_value(key, *text);
  h = (*numbers)[0];
  w = (*numbers)[1];
}

void AttributeReader::fixed(const char* key, const char* text) {
  const auto value = find(key);
  if (!value) refuse(fmt::format("{} is missing", key));
  if (!same_value(*value, text)) refuse_value(key, *value, fmt::format("only {} is supported", text));
}

void AttributeReader::only(const char* key, const char* text) {
  const auto value = find(key);
  const bool empty = value && without_blanks(*value) == "()";
  if (value && !empty && !same_value(*value, text))
    refuse_value(key, *value, fmt::format("only {} is supported", text));
}

void AttributeReader::require_all_known() const {
  for (const auto& [key, value] : attributes_) {
    if (!index_of(known_, key) && !index_of(kAnnotations, key) && !is_hidden(key)) {
      refuse(fmt::format("has the unknown attribute {}", key), advice(known_, key));
    }
  }
}

void AttributeReader::require_no_factors() const {
  for (const auto& [key, value] : attributes_) {
    if (index_of(kFactors, key) && !same_value(value, "1")) refuse(fmt::format("{} = {} is not supported", key, value));
  }
}

bool AttributeReader::is_frozen() const {
  return std::ranges::any_of(attributes_, [](const auto& attribute) {
    return (attribute.first == kMxnetRateFactor || attribute.first == "lr_mult") && same_value(attribute.second, "0");
  });
}

std::optional<std::string> AttributeReader::find(const char* key) {
  known_.push_back(key);
  const auto found = std::ranges::find(attributes_, key, [](const auto& attribute) { return attribute.first; });
  if (found == attributes_.end() || found->second == "None") return std::nullopt;
  return found->second;
}

std::size_t AttributeReader::choice_index(const char* key, const std::string& value, Names names) const {
  const auto index = index_of(names, value);
  if (!index) refuse_value(key, value, advice(names, value));
  return *index;
}

void AttributeReader::refuse(const std::string& what, std::string hint) const {
  throw DataError(fmt::format("{}: {}", where_, what), std::move(hint));
}

void AttributeReader::refuse_value(const char* key, const std::string& value, std::string hint) const {
  refuse(fmt::format("{} = {} is not supported", key, value), std::move(hint));
}

}  // namespace dtrain::nn
