// Whether there is something of a name.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// Throws Error where the folder cannot tell, as on a file server that is away: that is no missing file.
bool file_exists(const Path& path);

}  // namespace dtrain
