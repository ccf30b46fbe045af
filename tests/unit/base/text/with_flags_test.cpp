#include <gtest/gtest.h>

#include <dtrain/base/with_flags.hpp>

namespace dtrain {
namespace {

TEST(Settings, TheirNamesBecomeFlags) {
  EXPECT_EQ(with_flags("setting 'pad-size': must be 1"), "--pad-size: must be 1");
  EXPECT_EQ(with_flags("use setting 'dtype' auto, or a smaller setting 'lr'"), "use --dtype auto, or a smaller --lr");
}

TEST(Settings, OtherTextStays) {
  for (const char* text : {"", "a setting", "setting '", "setting 'x", "setting ''", "setting 'A b'", "the 'lr'"}) {
    EXPECT_EQ(with_flags(text), text);
  }
}

}  // namespace
}  // namespace dtrain
