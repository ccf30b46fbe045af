// The request "edit-hosts", applied to the text of the host file.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

namespace dtrain::elastic {

// Adds the lines of "add" and removes the hosts of "remove". Throws UsageError for a line that is there already, a host
// that is not there, or the removal of more than half of the hosts without "any_number".
std::string edited_hosts(std::string text, const Json& request);

}  // namespace dtrain::elastic
