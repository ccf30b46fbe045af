#include <algorithm>
#include <array>

#include <dtrain/base/text.hpp>
#include <dtrain/launcher/kubernetes.hpp>

namespace dtrain::launcher {
namespace {

bool is_nested(const Json& value) {
  return (value.is_object() && !value.as_object().empty()) || (value.is_array() && !value.as_array().empty());
}

// Keys of Kubernetes need no quotes, but the name of a variable may be one of YAML's words for other values.
std::string key_text(const std::string& key) {
  constexpr std::array<std::string_view, 9> kWords{"y", "yes", "on", "true", "n", "no", "off", "false", "null"};
  return std::ranges::find(kWords, lower_case(key)) == kWords.end() ? key : Json(key).dump();
}

void write_value(const Json& value, const std::string& indent, std::string& text);

void write_members(const Json::Object& members, const std::string& indent, std::string& text) {
  bool is_first = true;  // stands on the line of its list item
  for (const auto& [key, value] : members) {
    text.append(is_first ? "" : indent).append(key_text(key)).append(":");
    is_first = false;
    if (!is_nested(value)) {
      text.append(" ").append(value.dump()).append("\n");
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
      text.append(item.dump()).append("\n");
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
