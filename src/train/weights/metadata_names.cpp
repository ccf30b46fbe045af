#include "metadata_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::train {
namespace {

constexpr std::array kKeys = {"names", "classes", "labels", "class_names", "id2label", "class_to_idx", "idx_to_class"};

// A list has no keys.
using Entries = std::vector<std::pair<std::string, std::string>>;

std::string entry_text(const Json& value) {
  if (value.is_string()) return value.as_string();
  return value.is_integer() ? std::to_string(value.as_integer()) : std::string();
}

std::optional<Entries> entries_of_json(const std::string& text) try {
  const Json document = Json::parse(text, "metadata");
  Entries entries;
  if (document.is_array()) {
    for (const Json& value : document.as_array()) entries.emplace_back("", entry_text(value));
  } else if (document.is_object()) {
    for (const auto& [key, value] : document.as_object()) entries.emplace_back(key, entry_text(value));
  } else {
    return std::nullopt;
  }
  return entries;
} catch (const DataError&) {
  return std::nullopt;
}

struct LetterEscape {
  char kind, meaning;
};
constexpr std::array<LetterEscape, 6> kLetters = {
    {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'\'', '\''}, {'"', '"'}}};

struct CodeEscape {
  char kind;
  std::size_t digits;  // hexadecimal, of a code point
};
constexpr std::array<CodeEscape, 3> kCodes = {{{'x', 2}, {'u', 4}, {'U', 8}}};

// A replacement character where the number is no character of Unicode.
std::string utf8(std::uint32_t code) {
  constexpr std::uint32_t kReplacement = 0xfffd, kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff, kLast = 0x10ffff;
  if (code > kLast || (code >= kFirstSurrogate && code <= kLastSurrogate)) code = kReplacement;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  const auto next = [code](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x800) return {static_cast<char>(0xc0 | (code >> 6)), next(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | (code >> 12)), next(6), next(0)};
  return {static_cast<char>(0xf0 | (code >> 18)), next(12), next(6), next(0)};
}

// A list, a tuple or a dict as Python prints it, with strings and whole numbers.
class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  std::optional<Entries> read() {
    Entries entries;
    if (!take_any("[({")) return std::nullopt;
    while (!take_any("])}")) {
      auto value = word();
      if (!value) return std::nullopt;
      std::string key;
      if (take_any(":")) {
        key = std::exchange(*value, "");
        value = word();
        if (!value) return std::nullopt;
      }
      entries.emplace_back(std::move(key), *std::move(value));
      if (!take_any(",") && !is_at("])}")) return std::nullopt;
    }
    return entries;
  }

 private:
  bool is_at(std::string_view choices) {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() && choices.find(text_[at_]) != std::string_view::npos;
  }
  bool take_any(std::string_view choices) {
    const bool is_there = is_at(choices);
    at_ += is_there ? 1 : 0;
    return is_there;
  }

  std::optional<std::string> word() {
    std::string word;
    if (!is_at("'\"")) {
      while (is_at("-0123456789")) word += text_[at_++];
      return word.empty() ? std::nullopt : std::optional(word);
    }
    for (const char quote = text_[at_++]; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) return ++at_, word;
      word += text_[at_] == '\\' ? escaped() : std::string(1, text_[at_]);
    }
    return std::nullopt;
  }

  // What the escape at the backslash stands for; goes to its last character. Python leaves one that it does not know as
  // it is.
  std::string escaped() {
    const char kind = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    const auto digits = std::ranges::find(kCodes, kind, &CodeEscape::kind);
    if (digits != kCodes.end()) {
      const std::string_view code = text_.substr(at_ + 2, digits->digits);
      std::uint32_t number = 0;
      const auto read = std::from_chars(code.data(), code.data() + code.size(), number, 16);
      if (code.size() != digits->digits || read.ec != std::errc() || read.ptr != code.data() + code.size())
        return std::string(1, text_[at_]);
      at_ += 1 + code.size();
      return utf8(number);
    }
    const auto letter = std::ranges::find(kLetters, kind, &LetterEscape::kind);
    if (letter == kLetters.end()) return std::string(1, text_[at_]);
    ++at_;
    return std::string(1, letter->meaning);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  const char between = text.find('\n') != std::string::npos ? '\n' : ',';
  std::vector<std::string> lines;
  for (const std::string& line : split(text, between)) lines.emplace_back(trim(line));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// Names in the order of their labels; empty where the labels are not 0, 1, 2, ...
std::vector<std::string> by_label(const Entries& entries) {
  std::vector<std::string> names(entries.size());
  std::vector<bool> is_named(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [key, value] = entries[i];
    const auto number = parse_integer(key), other = parse_integer(value);
    const bool names_first = !key.empty() && !number && other;
    const auto label =
        static_cast<std::size_t>(key.empty() ? static_cast<std::int64_t>(i) : number.value_or(other.value_or(-1)));
    if (label >= names.size() || is_named[label]) return {};
    is_named[label] = true;
    names[label] = names_first ? key : value;
  }
  return names;
}

std::vector<std::string> names_in(const std::string& text) {
  const std::string_view inside = trim(text);
  if (inside.empty()) return {};
  if (std::string_view("[({").find(inside.front()) == std::string_view::npos) return lines_of(text);
  auto entries = entries_of_json(text);
  if (!entries) entries = PythonReader(inside).read();
  return entries ? by_label(*entries) : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> names_in_metadata(const std::map<std::string, std::string>& metadata, int classes) {
  for (const char* key : kKeys) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) continue;
    std::vector<std::string> names = names_in(found->second);
    const bool are_named = std::ranges::none_of(names, [](const std::string& name) { return name.empty(); });
    if (are_named && std::cmp_equal(names.size(), classes)) return names;
  }
  return {};
}

}  // namespace dtrain::train
