// A folder for one test, with files written as users write them.
#pragma once

#include <fstream>
#include <string_view>

#include <dtrain/base/files.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::elastic {

// Writes in place, not atomically, as an editor or a shell does.
inline void write_in_place(const Path& path, std::string_view text, bool append = false) {
  std::ofstream file(path, append ? std::ios::app | std::ios::binary : std::ios::trunc | std::ios::binary);
  file << text;
}

}  // namespace dtrain::elastic
