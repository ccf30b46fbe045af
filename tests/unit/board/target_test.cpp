#include "target.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

TEST(Target, ValuesAreDecoded) {
  const auto target = parse_target("/api/log?name=w%201.0&search=a+b%2Bc&from=12.5&empty=&alone");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/api/log");
  EXPECT_EQ(target->text("name"), "w 1.0");
  EXPECT_EQ(target->text("search"), "a b+c");
  EXPECT_EQ(target->number("from"), 12.5);
  EXPECT_EQ(target->number("empty"), std::nullopt);
  EXPECT_EQ(target->text("never"), "");
}

TEST(Target, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "api", "http://else/", "/%", "/%4", "/%zz", "/a?b=%f"})
    EXPECT_FALSE(parse_target(text)) << text;
  EXPECT_THROW(parse_target("/a?from=soon")->number("from"), UsageError);
}

}  // namespace
}  // namespace dtrain::board
