#include "target.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::board {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text, bool plus_is_blank) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      plain += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return plain;
}

}  // namespace

std::string Target::text(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::string() : found->second;
}

std::optional<double> Target::number(const std::string& name) const {
  const std::string word = text(name);
  if (word.empty()) return std::nullopt;
  const auto value = parse_number(word);
  if (!value) throw UsageError(fmt::format("{}={}: not a number", name, word));
  return value;
}

std::optional<Target> parse_target(std::string_view text) {
  const std::size_t mark = text.find('?');
  const auto path = decoded(text.substr(0, mark), false);
  if (!path || !path->starts_with('/')) return std::nullopt;
  Target target{*path, {}};
  if (mark == text.npos) return target;
  for (const std::string& part : split(text.substr(mark + 1), '&')) {
    const std::size_t equals = part.find('=');
    const auto name = decoded(std::string_view(part).substr(0, equals), true);
    const auto value = equals == part.npos ? std::string() : decoded(std::string_view(part).substr(equals + 1), true);
    if (!name || !value) return std::nullopt;
    if (!name->empty()) target.values[*name] = *value;
  }
  return target;
}

}  // namespace dtrain::board
