// A folder for one test, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::data {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "dtrain-data-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  Path operator/(std::string_view name) const { return path_ / name; }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

// Fails the test unless `act` throws an E whose message and hint hold `text`.
template <typename E = DataError, typename Act>
void expect_error(const Act& act, std::string_view text) {
  try {
    act();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const E& error) {
    const std::string all = std::string(error.what()) + " | " + error.hint();
    EXPECT_NE(all.find(text), all.npos) << "\"" << all << "\" does not hold \"" << text << "\"";
  }
}

}  // namespace dtrain::data
