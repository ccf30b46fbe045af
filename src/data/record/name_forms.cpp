#include "name_forms.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <map>

#include <dtrain/data/class_names.hpp>

namespace dtrain::data {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// The bytes of the UTF-8 character that begins there; 1 for a byte that begins none.
std::size_t bytes_of_character(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  const std::size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return count <= text.size() ? count : 1;
}

// U+0300 to U+036F.
bool is_combining_mark(std::string_view character) {
  if (character.size() != 2) return false;
  const unsigned char first = byte_at(character, 0);
  return first == 0xcc || (first == 0xcd && byte_at(character, 1) <= 0xaf);
}

// U+00C0 to U+017F and U+1E00 to U+1EFF, nearly all of which are a letter and its marks.
bool is_latin_beyond_ascii(std::string_view character) {
  const unsigned char first = byte_at(character, 0);
  if (character.size() == 2) return first >= 0xc3 && first <= 0xc5;
  return character.size() == 3 && first == 0xe1 && byte_at(character, 1) >= 0xb8 && byte_at(character, 1) <= 0xbb;
}

// A name with '*' for each letter with marks, in either form.
struct MarkedLetters {
  std::string name;
  bool has_combining_mark = false;
};

MarkedLetters marked_letters(std::string_view text) {
  MarkedLetters marked;
  for (std::size_t i = 0, size = 0; i < text.size(); i += size) {
    size = bytes_of_character(text.substr(i));
    const std::string_view character = text.substr(i, size);
    if (is_combining_mark(character)) {
      marked.has_combining_mark = true;
      if (!marked.name.empty()) marked.name.back() = '*';
    } else if (is_latin_beyond_ascii(character)) {
      marked.name += '*';
    } else {
      marked.name += character;
    }
  }
  return marked;
}

}  // namespace

bool are_forms_of_one_name(std::string_view a, std::string_view b) {
  const MarkedLetters one = marked_letters(a), other = marked_letters(b);
  return one.has_combining_mark != other.has_combining_mark && one.name == other.name;
}

std::optional<LookAlikes> look_alikes(std::span<const std::string> names) {
  std::map<std::string, LookAlikes> forms;  // by what both have in common
  for (const std::string& name : names) {
    const MarkedLetters marked = marked_letters(name);
    LookAlikes& found = forms[marked.name];
    (marked.has_combining_mark ? found.other : found.one) = escaped_bytes(name);
    if (!found.one.empty() && !found.other.empty()) return found;
  }
  return std::nullopt;
}

std::string escaped_bytes(std::string_view name) {
  constexpr unsigned char kFirstBeyondAscii = 0x80;
  std::string escaped;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const unsigned char byte = byte_at(name, i);
    escaped += byte < kFirstBeyondAscii ? std::string(1, name[i]) : fmt::format("\\x{:02x}", byte);
  }
  return escaped;
}

}  // namespace dtrain::data
