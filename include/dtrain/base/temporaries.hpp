// The temporary files of AtomicFile, and those that a killed process left behind.
#pragma once

#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain {

// PATH.tmp.PID.PLACE.RANDOM, a new name at each call. PLACE stands for this boot of the machine and this container:
// processes of others, which may share the folder, may have the same PID.
Path temporary_for(const Path& path);

// Removes the temporary files of the folder whose names begin with `start` and that no process is writing: PID does not
// live here, or the file is of another place and did not change for a day; one without a place, of an older version,
// did not change for a minute. Returns what it removed. A folder that cannot be read has none.
std::vector<Path> remove_abandoned_temporaries(const Path& folder, std::string_view start = {});

// Whether a file of this name, which may lie on another host, is the temporary file of a process of this boot of this
// machine that has ended: nothing writes it any more.
bool is_temporary_of_ended_process(std::string_view name);

}  // namespace dtrain
