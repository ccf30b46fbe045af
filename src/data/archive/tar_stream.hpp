// A tar archive from front to end: ustar (POSIX.1-1988), with GNU's and pax's long names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

struct TarEntry {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t content = 0;  // its first byte in the archive
  std::uint64_t end = 0;      // where the next entry begins
  bool folder = false;
};

// Fills the span from this offset of the archive; called with growing offsets only.
using TarRead = std::function<void(std::uint64_t offset, std::span<std::byte> into)>;

// The next file or folder at or after `offset`; nullopt: the archive ends here, with the block of zeros that is its end
// mark where `offset` is below `size`, else without one. Throws DataError naming `source` and the byte for a damaged
// header, and for links and devices, which a data set does not need.
std::optional<TarEntry> next_tar_entry(const std::string& source, std::uint64_t size, std::uint64_t offset,
                                       const TarRead& read);

}  // namespace dtrain::data
