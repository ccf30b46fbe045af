// A folder for one test, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::elastic {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "dtrain-elastic-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  Path operator/(std::string_view name) const { return path_ / name; }

 private:
  Path path_;
};

// As an editor or a shell writes: in place, not atomically.
inline void write_in_place(const Path& path, std::string_view text, bool append = false) {
  std::ofstream file(path, append ? std::ios::app | std::ios::binary : std::ios::trunc | std::ios::binary);
  file << text;
}

}  // namespace dtrain::elastic
