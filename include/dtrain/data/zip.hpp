// Zip archives as containers of a format: their files lie in them uncompressed.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

struct StoredFile {
  std::string name;  // its path inside
  ByteView bytes;    // of the archive
};

// Throws DataError naming `source` for damage, and for a file that is compressed.
std::vector<StoredFile> stored_files(ByteView zip, const std::string& source);

}  // namespace dtrain::data
