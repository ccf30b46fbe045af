// This program as one tar file for machines that download it: "dtrain" starts it from any folder.
#pragma once

#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::launcher {

struct ProgramArchive {
  std::string sha256;  // of the tar file, lower-case hex; the same for the same program
  std::uint64_t size = 0;
};

// Computes hash and size by reading the whole program. Throws Error if a file of it cannot be read.
ProgramArchive program_archive();
// Also writes the tar file to `to`, atomically.
ProgramArchive write_program_archive(const Path& to);

}  // namespace dtrain::launcher
