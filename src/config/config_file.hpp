// Configuration files: a small part of TOML. Lines are `key = value`, `[section]`, `# comment` or blank; a value is a
// number, true, false, a bare word, or a text in double or single quotes (with \" \\ \n \t in double quotes).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::config {

struct ConfigEntry {
  std::string section;  // "" before the first section; "data.prepare" for that command
  std::string key;
  std::string value;
  int line = 0;
};

// Throws UsageError naming source and line.
std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& source);

}  // namespace dtrain::config
