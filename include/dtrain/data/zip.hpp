// Zip archives as containers of a format.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

inline constexpr std::string_view kZipStart = "PK\x03\x04";

struct StoredFile {
  std::string name;  // its path inside
  ByteView bytes;    // of the archive, or of what it was unpacked to
  std::shared_ptr<const void> owner = {};
};

// Throws DataError naming `source` for damage, and for a file that is compressed.
std::vector<StoredFile> stored_files(ByteView zip, const std::string& source);
// The same, with compressed files unpacked into memory. Throws DataError also where one of them, or all together, are
// too large for that.
std::vector<StoredFile> unpacked_files(ByteView zip, const std::string& source);

}  // namespace dtrain::data
