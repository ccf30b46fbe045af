// Tar archives, written from front to end: ustar (POSIX.1-1988), with pax's records for what its fields cannot hold.
// An archive is each file's header, content and padding, and the end mark. Neither times nor owners stand in it: the
// same files make the same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct TarFile {
  std::string name;        // below the folder where it is unpacked, with '/' between
  std::uint64_t size = 0;  // bytes; of a folder 0
  unsigned mode = 0644;
  bool folder = false;
};

std::string tar_header(const TarFile& file);
std::string tar_padding(std::uint64_t size);  // behind a content of so many bytes
std::string tar_end();

}  // namespace dtrain
