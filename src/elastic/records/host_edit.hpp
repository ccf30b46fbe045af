// The request "edit-hosts", applied to the host file.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/elastic/host_file.hpp>

namespace dtrain::elastic {

// Adds the lines of "add" and removes the hosts of "remove". A request may remove only the hosts that it names: those
// of the job, `present`, that the file lacks, because it is missing, half written, or an edit that is not accepted, are
// written back first. `slots`: of a line without slots=. Returns what was repaired. Throws UsageError for a line that
// is there already, a host that is not there, the removal of more than half of the hosts without "any_number", or of
// all of them; the file is unchanged then. A link stays one, and the file keeps its permissions and, if possible, its
// owner and group.
std::vector<std::string> edit_host_file(const Path& file, const std::vector<HostLine>& present, int slots,
                                        const Json& request);

}  // namespace dtrain::elastic
