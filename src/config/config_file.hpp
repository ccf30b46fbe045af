// Configuration files: TOML, read by toml++. Tables are commands, `[data.prepare]`; keys are the long names of options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "option_set.hpp"

namespace dtrain::config {

struct ConfigEntry {
  std::string section;              // "" outside tables; "data.prepare" for that command
  std::string key;                  // underscores count as dashes
  std::vector<std::string> values;  // one, unless the file has a list
  bool is_list = false;
  int line = 0;
};

// In the order of the lines. Throws UsageError naming source and line.
std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& source);

// The options that were chosen as the table of a file, which gives them the same values again; those of a recipe stand
// in comments. Without the options that files do not set, and those in `left_out`.
std::string config_table(const OptionSet& set, std::string_view section, const std::vector<std::string>& left_out);

}  // namespace dtrain::config
