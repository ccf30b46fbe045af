#include "ini.hpp"

#include <fmt/format.h>

#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

// " # ..." behind a value is a comment; a '#' without a blank before it belongs to the value.
std::string_view without_comment(std::string_view line) {
  for (const std::string_view mark : {" #", " ;", "\t#", "\t;"}) line = line.substr(0, line.find(mark));
  return trim(line);
}

std::string with_single_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank) out += c;
    if (blank && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

// The text between two equal quotes; nullopt: it is not quoted.
std::optional<std::string_view> between_quotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quoted ? std::optional(text.substr(1, text.size() - 2)) : std::nullopt;
}

// The name between the brackets, runs of blanks as one: "profile x". A name in quotes, as in [profile "x y"], is taken
// as it stands, without them.
std::string section_name(std::string_view line) {
  const std::string_view text = trim(line.substr(1, line.find(']') - 1));
  for (const std::string_view kind : {"profile", "sso-session", "services"}) {
    if (!text.starts_with(kind)) continue;
    const std::string_view rest = text.substr(kind.size());
    const auto quoted = between_quotes(trim(rest));
    if (quoted && trim(rest).size() < rest.size()) return fmt::format("{} {}", kind, *quoted);
  }
  return with_single_blanks(text);
}

}  // namespace

Ini parse_ini(std::string_view text, std::string_view source) {
  Ini ini;
  std::map<std::string, std::string>* section = nullptr;
  std::string parent;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::string_view content = trim(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[' && content.find(']') != content.npos) {
      section = &ini[section_name(content)];
      parent.clear();
      continue;
    }
    const std::size_t equals = content.find('=');
    if (!section || equals == 0 || equals == content.npos) {
      throw UsageError(fmt::format("{}: line {}: neither \"[section]\" nor \"key = value\"", source, number),
                       "correct the line, or put a # before it");
    }
    const std::string key = lower_case(trim(content.substr(0, equals)));
    const bool indented = line.front() == ' ' || line.front() == '\t';
    if (!indented) parent = key;
    (*section)[indented && !parent.empty() ? parent + "." + key : key] = without_comment(content.substr(equals + 1));
  }
  return ini;
}

}  // namespace dtrain::net
