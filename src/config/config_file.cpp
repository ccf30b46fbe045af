#include "config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::config {
namespace {

class ConfigLine {
 public:
  ConfigLine(std::string_view text, const std::string& source, int number)
      : rest_(trim(text)), source_(source), number_(number) {}

  bool blank() const { return rest_.empty() || rest_[0] == '#'; }
  bool is_section() const { return rest_[0] == '['; }

  std::string section() {
    const auto end = rest_.find(']');
    if (end == std::string_view::npos) fail("a section ends with ']'");
    const std::string name(trim(rest_.substr(1, end - 1)));
    expect_end(rest_.substr(end + 1));
    return name;
  }

  ConfigEntry entry(const std::string& section) {
    const auto equals = rest_.find('=');
    if (equals == std::string_view::npos) fail("expected 'key = value'");
    std::string key(trim(rest_.substr(0, equals)));
    std::replace(key.begin(), key.end(), '_', '-');
    if (!is_name(key)) fail(fmt::format("'{}' is not the name of an option", key));
    rest_ = trim(rest_.substr(equals + 1));
    return {section, key, value(), number_};
  }

 private:
  static bool is_name(std::string_view key) {
    return !key.empty() &&
           std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) || c == '-'; });
  }

  std::string value() {
    if (rest_.empty()) fail("the value is missing");
    if (rest_[0] == '"' || rest_[0] == '\'') return quoted(rest_[0]);
    const std::string_view bare = trim(rest_.substr(0, rest_.find('#')));
    if (bare.empty()) fail("the value is missing");
    if (bare[0] == '[' || bare[0] == '{') fail("lists and tables are written as text: \"30,60\"");
    if (bare.find_first_of(" \t\"'") != std::string_view::npos)
      fail("a value with blanks or quotes needs quotes around it");
    return std::string(bare);
  }

  std::string quoted(char quote) {
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        expect_end(rest_.substr(i + 1));
        return text;
      }
      text += quote == '"' && rest_[i] == '\\' && i + 1 < rest_.size() ? escaped(rest_[++i]) : rest_[i];
    }
    fail("the closing quote is missing");
  }

  char escaped(char c) const {
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case '"':
      case '\\':
        return c;
      default:
        fail(fmt::format("unknown escape '\\{}'", c));
    }
  }

  void expect_end(std::string_view rest) const {
    rest = trim(rest);
    if (!rest.empty() && rest[0] != '#') fail(fmt::format("unexpected '{}'", rest));
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw UsageError(fmt::format("{}:{}: {}", source_, number_, why));
  }

  std::string_view rest_;
  const std::string& source_;
  int number_;
};

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& source) {
  std::vector<ConfigEntry> entries;
  std::string section;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ConfigLine line(raw, source, ++number);
    if (line.blank()) continue;
    if (line.is_section()) {
      section = line.section();
    } else {
      entries.push_back(line.entry(section));
    }
  }
  return entries;
}

}  // namespace dtrain::config
