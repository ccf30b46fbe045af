// This program as one tar file, for machines that fetch it: "dtrain" starts it, wherever it is unpacked.
#pragma once

#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::launcher {

struct ProgramArchive {
  std::string sha256;  // of the tar, lower-case hex: the same for the same program
  std::uint64_t size = 0;
};

// Reads the whole program. Throws Error when a file of it cannot be read.
ProgramArchive program_archive();
// The same, and leaves the tar at `to`, whole or not at all.
ProgramArchive write_program_archive(const Path& to);

}  // namespace dtrain::launcher
