// What a request "edit-hosts" makes of the host file's text.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

namespace dtrain::elastic {

// Lines of "add" are added, hosts of "remove" removed. UsageError: a line that is there already, a host that is not,
// or more than half of the hosts removed without "any_number".
std::string edited_hosts(std::string text, const Json& request);

}  // namespace dtrain::elastic
