// A folder for one test, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = ::testing::TempDir() + "dtrain-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  Path operator/(std::string_view name) const { return path_ / name; }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace dtrain
