#include <dtrain/base/output_lines.hpp>

#include <gtest/gtest.h>

namespace dtrain {
namespace {

using namespace std::chrono_literals;

const OutputLines::Time kStart{100s};

TEST(OutputLines, AreWholeLinesHoweverTheBytesCome) {
  for (const std::size_t step : {1, 2, 3, 7, 100}) {
    OutputLines lines;
    std::string all;
    const std::string text = "one\ntwo\r\n\nthree\r\r\nfour";
    for (std::size_t at = 0; at < text.size(); at += step) all += lines.add(text.substr(at, step), kStart);
    EXPECT_EQ(all, "one\ntwo\n\nthree\n") << step;
    EXPECT_EQ(lines.end(), "four\n") << step;
    EXPECT_EQ(lines.end(), "") << step;
  }
}

TEST(OutputLines, ShowOneStateOfAProgressBarInASecondAndTheLast) {
  OutputLines lines;
  EXPECT_EQ(lines.add("\r 10%", kStart), "");
  EXPECT_EQ(lines.add("\r 20%", kStart), " 10%\n");
  EXPECT_EQ(lines.add("\r 30%\r 40%", kStart + 500ms), "");
  EXPECT_EQ(lines.add("\r 50%", kStart + 1s), " 40%\n");
  EXPECT_EQ(lines.add("\r100%\n", kStart + 1200ms), "100%\n");
  EXPECT_EQ(lines.add("done\n", kStart + 1200ms), "done\n");
}

TEST(OutputLines, KeepTheLastStateOfAProgramThatEndsAmidABar) {
  OutputLines lines;
  EXPECT_EQ(lines.add("\r 10%\r", kStart), "");
  EXPECT_EQ(lines.add(" 20%\r", kStart), " 10%\n");
  EXPECT_EQ(lines.end(), " 20%\n");
}

TEST(OutputLines, AreSplitWhereTheyNeverEnd) {
  OutputLines lines;
  const std::string half(OutputLines::kLongest / 2, 'x');
  EXPECT_EQ(lines.add(half, kStart), "");
  EXPECT_EQ(lines.add(half, kStart), half + half + "\n");
  EXPECT_EQ(lines.add("rest\n", kStart), "rest\n");
}

}  // namespace
}  // namespace dtrain
