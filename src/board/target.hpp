// What a browser asks for: the path of a request and the values behind its question mark.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain::board {

struct Target {
  std::string path;  // decoded, begins with /
  std::map<std::string, std::string> values;

  std::string text(const std::string& name) const;  // empty: not given
  // Throws UsageError where the value is no number.
  std::optional<double> number(const std::string& name) const;
};

// "/api/log?run=a1&name=w1.0": percent signs and + are decoded. nullopt: no target.
std::optional<Target> parse_target(std::string_view text);

}  // namespace dtrain::board
