// ~/.aws/config and ~/.aws/credentials: sections of "key = value" lines.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace dtrain::net {

// section -> key -> value. Keys are in lower case; a key that stands indented below "parent =" is "parent.key".
using Ini = std::map<std::string, std::map<std::string, std::string>>;

// Throws UsageError naming `source` and the line that is neither section, key, comment nor blank.
Ini parse_ini(std::string_view text, std::string_view source);

}  // namespace dtrain::net
