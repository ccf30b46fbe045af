#include "safe_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::data {

void check_stays_inside(std::string_view name, std::string_view source) {
  const std::vector<std::string> parts = split(name, '/');
  const bool climbs = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (!name.empty() && !name.starts_with('/') && !climbs && name.find('\0') == name.npos) return;
  throw DataError(fmt::format("{}: holds the name \"{}\", which would be written outside of the folder", source, name),
                  "do not trust this source");
}

}  // namespace dtrain::data
