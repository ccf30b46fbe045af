#include "cli/far_text.hpp"

#include <gtest/gtest.h>

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;

class FarTextOnTerminal : public testing::Test {
 protected:
  std::string take(std::string_view bytes, std::chrono::milliseconds at = 0ms) {
    return text_.take(bytes, OutputLines::Time(1h) + at);
  }
  FarText text_{true};
};

TEST_F(FarTextOnTerminal, SendsNoControlSequence) {
  EXPECT_EQ(take("a\x1b]52;c;Y3VybA==\a b\n"), "a^[]52;c;Y3VybA==^G b\n");
  EXPECT_EQ(take("\x1b[1;31mred\x1b[0m\ttab\n"), "\x1b[1;31mred\x1b[0m\ttab\n") << "colours stay";
}

// Each of two pieces may be harmless: an escape and a word, or the halves of a control character in UTF-8.
TEST_F(FarTextOnTerminal, SendsNoneThatCameInPieces) {
  EXPECT_EQ(take("\xc2"), "");
  EXPECT_EQ(take("\x9b"
                 "2J\x1b"),
            "");
  EXPECT_EQ(take("[1;3"), "");
  EXPECT_EQ(take("1mred\nne"), "\\x9b2J\x1b[1;31mred\n");
  EXPECT_EQ(take("xt\n"), "next\n");
}

TEST_F(FarTextOnTerminal, EndsWithTheLineThatHasNoEnd) {
  EXPECT_EQ(take("one\ntwo\x1b[2J"), "one\n");
  EXPECT_EQ(text_.end(), "two^[[2J");
  EXPECT_EQ(text_.end(), "");
}

TEST_F(FarTextOnTerminal, ShowsSomeStatesOfARedrawnLineAndTheLast) {
  EXPECT_EQ(take("one\r\ntwo\r\n"), "one\ntwo\n") << "line ends of other systems";
  EXPECT_EQ(take("\r10 %\r20 %"), "10 %\n");
  EXPECT_EQ(take("\r30 %\r40 %", 500ms), "");
  EXPECT_EQ(take("\r50 %\r60 %", 1500ms), "40 %\n");
  EXPECT_EQ(take("\r100 %\ndone\n", 1600ms), "100 %\ndone\n");
  EXPECT_EQ(take("\r1 %\r2 %\r", 1700ms), "");
  EXPECT_EQ(text_.end(), "2 %");
}

TEST_F(FarTextOnTerminal, KeepsNoLineThatNeverEnds) {
  EXPECT_EQ(take(std::string(OutputLines::kLongest, 'x')), std::string(OutputLines::kLongest, 'x') + "\n");
  EXPECT_EQ(text_.end(), "");
}

TEST(FarTextInAFile, StaysAsItIs) {
  FarText text(false);
  for (const std::string_view bytes : {"a\x1b]52;c;x\a\r", "\xc2", "\x9b\n"}) EXPECT_EQ(text.take(bytes, {}), bytes);
  EXPECT_EQ(text.end(), "");
}

}  // namespace
}  // namespace dtrain::cli
