#include <dtrain/base/with_flags.hpp>

#include <algorithm>
#include <cctype>

namespace dtrain {

std::string with_flags(std::string_view text) {
  constexpr std::string_view kLead = "setting '";
  const auto in_name = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-'; };
  std::string out;
  for (std::size_t at = 0; (at = text.find(kLead)) != std::string_view::npos;) {
    const std::string_view rest = text.substr(at + kLead.size());
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(rest, in_name) - rest.begin());
    const bool is_name = end > 0 && end < rest.size() && rest[end] == '\'';
    out += text.substr(0, is_name ? at : at + kLead.size());
    if (is_name) out.append("--").append(rest.substr(0, end));
    text = rest.substr(is_name ? end + 1 : 0);
  }
  return out.append(text);
}

}  // namespace dtrain
