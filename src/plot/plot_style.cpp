#include "plot_style.hpp"

#include <algorithm>
#include <cstddef>

namespace dtrain::plot {

std::string fitted(const std::string& text, double size, double width) {
  const auto letters = static_cast<std::size_t>(std::max(1.0, width / (size * kLetterShare)));
  const auto begins_letter = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  if (static_cast<std::size_t>(std::ranges::count_if(text, begins_letter)) <= letters) return text;
  std::string cut;
  std::size_t seen = 0;
  for (const char c : text) {
    if (begins_letter(c) && ++seen >= letters) break;
    cut += c;
  }
  return cut + "\u2026";
}

}  // namespace dtrain::plot
