// A folder for one test, and files in it that are written as people do.
#pragma once

#include <fstream>
#include <string_view>

#include <dtrain/base/files.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::elastic {

// As an editor or a shell writes: in place, not atomically.
inline void write_in_place(const Path& path, std::string_view text, bool append = false) {
  std::ofstream file(path, append ? std::ios::app | std::ios::binary : std::ios::trunc | std::ios::binary);
  file << text;
}

}  // namespace dtrain::elastic
