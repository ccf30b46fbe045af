#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/text.hpp>
#include <dtrain/launcher/kubernetes.hpp>

namespace dtrain::launcher {
namespace {

bool is_nested(const Json& value) {
  return (value.is_object() && !value.as_object().empty()) || (value.is_array() && !value.as_array().empty());
}

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

// The character at the beginning of text in UTF-8.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  char32_t code = bytes == 1 ? byte(0) : byte(0) & (0x7fU >> bytes);
  for (std::size_t i = 1; i < std::min(bytes, text.size()); ++i) code = code << 6 | (byte(i) & 0x3fU);
  return {code, bytes};
}

// JSON may hold these as they are, but YAML takes them for damage, or for the end of a line.
bool needs_escape(char32_t code) {
  return (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe ||
         code == 0xffff;
}

std::string value_text(const Json& value) {
  const std::string json = value.dump();
  std::string text;
  for (std::string_view rest = json; !rest.empty();) {
    const Character next = first_character(rest);
    const std::string_view bytes = rest.substr(0, next.bytes);
    if (needs_escape(next.code)) {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(next.code));
    } else {
      text += bytes;
    }
    rest.remove_prefix(bytes.size());
  }
  return text;
}

// Keys of Kubernetes need no quotes, but the name of a variable may be one of YAML's words for other values.
std::string key_text(const std::string& key) {
  constexpr std::array<std::string_view, 9> kWords{"y", "yes", "on", "true", "n", "no", "off", "false", "null"};
  return std::ranges::find(kWords, lower_case(key)) == kWords.end() ? key : value_text(key);
}

void write_value(const Json& value, const std::string& indent, std::string& text);

void write_members(const Json::Object& members, const std::string& indent, std::string& text) {
  bool is_first = true;  // stands on the line of its list item
  for (const auto& [key, value] : members) {
    text.append(is_first ? "" : indent).append(key_text(key)).append(":");
    is_first = false;
    if (!is_nested(value)) {
      text.append(" ").append(value_text(value)).append("\n");
      continue;
    }
    text += "\n" + indent + "  ";
    write_value(value, indent + "  ", text);
  }
}

// The first line is written where the text ends.
void write_value(const Json& value, const std::string& indent, std::string& text) {
  if (value.is_object()) return write_members(value.as_object(), indent, text);
  bool is_first = true;
  for (const Json& item : value.as_array()) {
    text.append(is_first ? "" : indent).append("- ");
    is_first = false;
    if (is_nested(item)) {
      write_value(item, indent + "  ", text);
    } else {
      text.append(value_text(item)).append("\n");
    }
  }
}

}  // namespace

std::string to_yaml(const std::vector<Json>& documents) {
  std::string text;
  for (const Json& document : documents) {
    text += "---\n";
    write_value(document, "", text);
  }
  return text;
}

}  // namespace dtrain::launcher
