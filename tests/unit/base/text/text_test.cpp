#include <gtest/gtest.h>

#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

using std::chrono::duration;

TEST(Text, TrimRemovesBlanksAtBothEndsOnly) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(join(split("200,250", ','), " "), "200 250");
}

TEST(Text, LowerCaseLeavesAllButLetters) { EXPECT_EQ(lower_case("Content-TYPE 1\xc3\x89"), "content-type 1\xc3\x89"); }

TEST(Text, PrefixesIgnoreCaseButNotLength) {
  EXPECT_TRUE(starts_with_ignoring_case("<!DOCTYPE html>", "<!doctype"));
  EXPECT_FALSE(starts_with_ignoring_case("<!", "<!doctype"));
}

TEST(Text, NumbersMustBeTheWholeText) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("+12"), 12);
  for (const char* bad : {"", "+", "12 ", " 12", "12x", "1.5", "9223372036854775808", "0x10", "+-1"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_number("2e-5"), 2e-5);
  for (const char* bad : {"", "1.2.3", "nan", "inf", "1e999", "0.1f", "+-1"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
  }
}

TEST(Text, TheNearestNameForgivesATypoButNotAnotherWord) {
  const std::vector<std::string> names = {"resnet", "resnet-v1", "lenet", "mlp"};
  EXPECT_EQ(nearest_name("rensnet", names), "resnet");
  EXPECT_EQ(nearest_name("lnet", names), "lenet");
  EXPECT_EQ(nearest_name("mpl", names), "mlp");
  EXPECT_EQ(nearest_name("transformer", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
}

TEST(Text, SizesAndTimesReadWell) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(3ull << 30), "3.0 GiB");
  EXPECT_EQ(format_duration(duration<double>(0.85)), "850 ms");
  EXPECT_EQ(format_duration(duration<double>(3.2)), "3.2 s");
  EXPECT_EQ(format_duration(duration<double>(125)), "2:05");
  EXPECT_EQ(format_duration(duration<double>(3723)), "1:02:03");
}

TEST(Text, CountsThings) {
  EXPECT_EQ(count_text(0, "worker"), "0 workers");
  EXPECT_EQ(count_text(1u, "worker"), "1 worker");
  EXPECT_EQ(count_text(std::size_t{2}, "added worker"), "2 added workers");
}

}  // namespace
}  // namespace dtrain
