// What is there under a name.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// Throws Error if the folder cannot be looked up, for example on a file server that does not answer.
[[nodiscard]] bool file_exists(const Path& path);

// An absolute folder, or the nearest one above it that exists: where a folder that is made later will lie. `error` says
// why the system cannot look one of them up.
Path existing_folder(Path folder, std::error_code& error);

}  // namespace dtrain
