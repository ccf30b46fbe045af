#include <gtest/gtest.h>

#include <dtrain/data/numbered_names.hpp>

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

TEST(NumberedNames, GiveEachClassAName) {
  EXPECT_EQ(numbered_names({"cat", "dog"}, 4), (Names{"cat", "dog", "2", "3"}));
  EXPECT_EQ(numbered_names({}, 2), (Names{"0", "1"}));
}

}  // namespace
}  // namespace dtrain::data
