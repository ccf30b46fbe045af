#include <gtest/gtest.h>

#include "printable.hpp"

namespace dtrain::cli {
namespace {

TEST(Printable, ShowsControlSequencesInsteadOfSendingThem) {
  EXPECT_EQ(printable("a\x1b]0;title\ab"), "a^[]0;title^Gb");
  EXPECT_EQ(printable("\x1b[2J\x1b[1;1H"), "^[[2J^[[1;1H");
  EXPECT_EQ(printable("shown\rhidden\x7f"), "shown^Mhidden^?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(printable("\x1b[31"), "^[[31");
}

TEST(Printable, KeepsTextAndColours) {
  for (const char* text : {"two\nlines\tand a tab", "\x1b[1;31merror:\x1b[0m", "Grüße \xe2\x9b\xb5", ""}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, KeepsAWordOnOneLineWithoutColours) {
  EXPECT_EQ(printable_word("a\nb\tc"), "a^Jb^Ic");
  EXPECT_EQ(printable_word("\x1b[31mred"), "^[[31mred");
}

}  // namespace
}  // namespace dtrain::cli
