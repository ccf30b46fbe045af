#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include <dtrain/base/error.hpp>

#include "option_values.hpp"

namespace dtrain::config {
namespace {

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OptionValues, RangesAreToldInWords) {
  EXPECT_EQ(refusal([] { whole_number<int>("0", at_least(1)); }), "must be 1 or more, not 0");
  EXPECT_EQ(refusal([] { real_number("0", more_than(0)); }), "must be more than 0, not 0");
  EXPECT_EQ(refusal([] { real_number("1.5", between(0, 1)); }), "must be between 0 and 1, not 1.5");
  EXPECT_EQ(refusal([] { whole_number<int>("3000000000", {}); }), "3000000000 is too large");
  EXPECT_EQ(refusal([] { whole_number<int>("-99999999999", at_least(1)); }), "must be 1 or more, not -99999999999");
  EXPECT_EQ(refusal([] { whole_number<int>("3000000000", between(0, 9)); }), "must be between 0 and 9, not 3000000000");
  EXPECT_EQ(refusal([] { whole_number<int>("-3000000000", {}); }), "-3000000000 is too small");
  EXPECT_EQ(refusal([] { whole_number<int>("99999999999999999999", at_least(0)); }),
            "99999999999999999999 is too large");
  EXPECT_EQ(refusal([] { whole_number<int>("-99999999999999999999", at_least(0)); }),
            "must be 0 or more, not -99999999999999999999");
}

TEST(OptionValues, TheEndsOfARangeBelongToIt) {
  EXPECT_EQ(whole_number<int>("1", at_least(1)), 1);
  EXPECT_EQ(real_number("1", between(0, 1)), 1.0);
}

TEST(OptionValues, NumbersAndShortWordsAreNoMisspeltWords) {
  const auto hint = [](const char* text) {
    const std::vector<std::string> choices = {"1", "5", "zsh", "fish"};
    try {
      one_of(text, choices);
    } catch (const UsageError& error) {
      return error.hint();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(hint("3"), "");
  EXPECT_EQ(hint("sh"), "");
  EXPECT_EQ(hint("fihs"), "did you mean 'fish'?");
}

TEST(OptionValues, NumbersMustBeWholeTexts) {
  EXPECT_EQ(refusal([] { whole_number<int>("12x", {}); }), "must be a whole number, not '12x'");
  EXPECT_EQ(refusal([] { real_number("nan", {}); }), "must be a number, not 'nan'");
  EXPECT_EQ(refusal([] { real_number("", {}); }), "must be a number, not ''");
}

TEST(OptionValues, SecondsHaveAMostThatClocksCount) {
  OptionSet set;
  Seconds wait{1}, pause{1};
  Option& some = add_seconds(set, "--wait", wait, "", more_than(0));
  Option& short_one = add_seconds(set, "--pause", pause, "", between(0, 3600));
  EXPECT_EQ(refusal([&] { some.set("1e10"); }), "must be more than 0 and at most 10000000, not 1e10");
  EXPECT_EQ(refusal([&] { short_one.set("3601"); }), "must be between 0 and 3600, not 3601");
  some.set("1e7");
  EXPECT_GT(std::chrono::duration_cast<std::chrono::nanoseconds>(100 * wait).count(), 0);
}

TEST(OptionValues, ANumberInARangeIsInIt) {
  EXPECT_TRUE(between(0, 1).has(0) && between(0, 1).has(1) && !between(0, 1).has(1.5));
  EXPECT_TRUE(more_than(0).has(0.1) && !more_than(0).has(0));
  EXPECT_EQ(refusal([] { require_in(between(0, 0.05), 0.1f, "share"); }),
            "setting 'share': must be between 0 and 0.05, not 0.1");
  EXPECT_EQ(refusal([] { require_in(at_least(0), std::numeric_limits<float>::infinity(), "share"); }),
            "setting 'share': must be 0 or more, not inf");
  EXPECT_EQ(refusal([] { require_in(from_and_below(0, 1), 1.0f, "share"); }),
            "setting 'share': must be at least 0 and less than 1, not 1");
  EXPECT_EQ(refusal([] { require_in(between(0.1, 1), 0.1f, "share"); }), "accepted");
}

TEST(OptionValues, StepsOfAScheduleAscend) {
  EXPECT_EQ(ascending_numbers("30, 60").size(), 2u);
  EXPECT_TRUE(ascending_numbers("").empty());
  for (const char* text : {"-1", "0", "5,3", "5,5"}) {
    EXPECT_EQ(refusal([text] { ascending_numbers(text); }),
              std::string("must be numbers above 0 in ascending order, such as 30,60, not '") + text + "'");
  }
}

TEST(OptionValues, OneChannelCountsForAll) {
  EXPECT_EQ(three_channels("255"), (std::array<float, 3>{255, 255, 255}));
  EXPECT_EQ(three_channels("1, 2,3"), (std::array<float, 3>{1, 2, 3}));
  EXPECT_NE(refusal([] { three_channels("1,2"); }), "accepted");
}

TEST(OptionValues, ShapesHaveOneOrThreeChannels) {
  EXPECT_EQ(image_shape("1,28,32"), (nn::Shape{1, 28, 32}));
  EXPECT_NE(refusal([] { image_shape("2,28,28"); }), "accepted");
  EXPECT_NE(refusal([] { image_shape("3,28"); }), "accepted");
  EXPECT_NE(refusal([] { image_shape("3,0,28"); }), "accepted");
}

TEST(OptionValues, AnEmptyListHasNoNumbers) {
  EXPECT_TRUE(number_list("").empty());
  EXPECT_EQ(number_list("30, 60").size(), 2u);
  EXPECT_NE(refusal([] { number_list("30,,60"); }), "accepted");
}

}  // namespace
}  // namespace dtrain::config
