// Whether there is something of a name.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// Throws Error if the folder cannot be looked up, for example on a file server that does not answer.
[[nodiscard]] bool file_exists(const Path& path);

}  // namespace dtrain
