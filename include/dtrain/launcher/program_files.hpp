// The files of this program.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::launcher {

// The folder of the bundle (packaging/bundle.sh) whose loader started the command; empty: the command is a program of
// this machine.
Path bundle_of(const std::vector<std::string>& command);

struct ProgramFile {
  std::string name;  // path below the folder of the copy: "dtrain", "bin/dtrain", "lib/libc.so.6"
  Path path;
  std::uint64_t size = 0;
  unsigned mode = 0;
};
// The files that run, without licences and the like, by name: those of the bundle, or the program alone.
std::vector<ProgramFile> program_files();
std::vector<ProgramFile> bundle_files(const Path& bundle);

}  // namespace dtrain::launcher
