#include "printable.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace dtrain::cli {
namespace {

constexpr std::string_view kOfColor = "0123456789;";

// The length of the colour sequence that the text begins with; 0: none.
std::size_t color_at(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of(kOfColor, 2);
  return end != text.npos && text[end] == 'm' ? end + 1 : 0;
}

// U+0080 to U+009F in UTF-8, which some terminals take for control characters of one byte.
bool is_long_control(std::string_view text) {
  return text.size() >= 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

std::string shown_text(std::string_view text, bool keep_layout) {
  std::string shown;
  while (!text.empty()) {
    const char first = text.front();
    std::size_t taken = 1;
    if (const std::size_t color = color_at(text); keep_layout && color > 0) {
      taken = color;
      shown += text.substr(0, color);
    } else if (is_long_control(text)) {
      taken = 2;
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[1]));
    } else if (is_control(first) && !(keep_layout && (first == '\n' || first == '\t'))) {
      shown += '^';
      shown += static_cast<char>(first ^ 0x40);
    } else {
      shown += first;
    }
    text.remove_prefix(taken);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return shown_text(text, true); }

std::string printable_word(std::string_view text) { return shown_text(text, false); }

std::string first_letters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t letters = 0; end < text.size(); ++end) {
    const bool begins_letter = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins_letter && ++letters > count) break;
  }
  return std::string(text.substr(0, end));
}

std::string printable_on(int descriptor, std::string_view text) {
  return ::isatty(descriptor) ? printable(text) : std::string(text);
}

}  // namespace dtrain::cli
