// Temporary files of AtomicFile that a killed process left behind.
#pragma once

#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain {

// Removes the files START*.tmp.PID of the folder that no process is writing: PID does not live on this machine, and the
// file did not change for a minute, which keeps those of another machine that shares the folder. Returns what it
// removed. A folder that cannot be read has none.
std::vector<Path> remove_abandoned_temporaries(const Path& folder, std::string_view start = {});

}  // namespace dtrain
