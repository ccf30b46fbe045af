#include "config_file.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::config {
namespace {

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& source) : source_(source) {}

  std::vector<ConfigEntry> read(const toml::table& root) {
    add_table("", root);
    std::ranges::stable_sort(entries_, {}, &ConfigEntry::line);
    return std::move(entries_);
  }

 private:
  void add_table(const std::string& section, const toml::table& table) {
    for (const auto& [name, node] : table) {
      const std::string key(name.str());
      if (const toml::table* inner = node.as_table()) {
        add_table(section.empty() ? key : section + "." + key, *inner);
      } else {
        entries_.push_back(entry(section, key, node));
      }
    }
  }

  ConfigEntry entry(const std::string& section, const std::string& key, const toml::node& node) const {
    ConfigEntry entry{.section = section, .key = key, .values = {}, .line = line_of(node)};
    std::ranges::replace(entry.key, '_', '-');
    if (const toml::array* list = node.as_array()) {
      entry.is_list = true;
      for (const toml::node& item : *list) entry.values.push_back(text_of(item, entry));
    } else {
      entry.values.push_back(text_of(node, entry));
    }
    return entry;
  }

  std::string text_of(const toml::node& node, const ConfigEntry& entry) const {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
    throw UsageError(fmt::format("{}:{}: {}: must be a text, a number, true or false, or a list of these", source_,
                                 entry.line, entry.key),
                     "write a date or another special value as a text in quotes");
  }

  static int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

  const std::string& source_;
  std::vector<ConfigEntry> entries_;
};

// Numbers that TOML writes as this program does; every other text is a string, which JSON writes as TOML reads it.
bool is_toml_number(const std::string& text) {
  if (const auto whole = parse_integer(text)) return std::to_string(*whole) == text;
  const auto number = parse_number(text);
  const bool is_real = text.find_first_of(".e") != text.npos && text.find_first_not_of("0123456789.e-+") == text.npos;
  return number && is_real && fmt::format("{}", *number) == text;
}

std::string toml_value(const Option& option) {
  const std::string text = option.show();
  return (option.is_switch() || is_toml_number(text)) ? text : Json(text).dump();
}

}  // namespace

std::string config_table(const OptionSet& set, std::string_view section, const std::vector<std::string>& left_out) {
  std::string table = fmt::format("[{}]\n", section);
  for (const Option& option : set.options()) {
    if (option.flag_only || option.source == Source::fallback || std::ranges::count(left_out, option.name())) continue;
    const bool of_recipe = option.source == Source::recipe;
    table += fmt::format("{}{} = {}{}\n", of_recipe ? "# " : "", option.name(), toml_value(option),
                         of_recipe ? fmt::format("  ({})", option.origin) : "");
  }
  return table;
}

std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& source) {
  try {
    return ConfigReader(source).read(toml::parse(text, source));
  } catch (const toml::parse_error& error) {
    throw UsageError(fmt::format("{}:{}: {}", source, error.source().begin.line, error.description()),
                     "a line is `key = value`, and texts stand in quotes; `dtrain help configuration` shows a file");
  }
}

}  // namespace dtrain::config
