// A folder for one test, and how errors about its files are expected.
#pragma once

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::data {

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
