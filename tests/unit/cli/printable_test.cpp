#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/files.hpp>

#include "console.hpp"
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

TEST(Printable, CutsNoLetterApart) {
  EXPECT_EQ(first_letters("Gr\u00fc\u00dfe", 3), "Gr\u00fc");
  EXPECT_EQ(first_letters("Gr\u00fc\u00dfe", 9), "Gr\u00fc\u00dfe");
  EXPECT_EQ(first_letters("\u20ac\u20ac", 1), "\u20ac");
  EXPECT_EQ(first_letters("abc", 0), "");
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

// Standard error is a terminal of 40 columns while this lives.
class TerminalOnStderr {
 public:
  TerminalOnStderr() : master_(::posix_openpt(O_RDWR | O_NOCTTY)), former_(::dup(STDERR_FILENO)) {
    if (::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) return;
    const FileDescriptor terminal(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY));
    const winsize size{.ws_row = 10, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    is_there_ = terminal && ::ioctl(terminal.get(), TIOCSWINSZ, &size) == 0;
    ::dup2(terminal.get(), STDERR_FILENO);
  }
  ~TerminalOnStderr() { ::dup2(former_.get(), STDERR_FILENO); }
  TerminalOnStderr(const TerminalOnStderr&) = delete;

  bool is_there() const { return is_there_; }
  std::string shown() const {
    std::string text;
    pollfd ready{.fd = master_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&ready, 1, 200) == 1 && (ready.revents & POLLIN) != 0) {
      char some[256];
      const ssize_t got = ::read(master_.get(), some, sizeof some);
      if (got <= 0) break;
      text.append(some, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  const FileDescriptor master_, former_;
  bool is_there_ = false;
};

TEST(Printable, AProgressLineSendsNoControlSequencesOfAName) {
  const std::string former = environment("TERM").value_or("");
  ::setenv("TERM", "xterm", 1);
  std::string shown;
  bool is_there = false;
  {
    const TerminalOnStderr terminal;
    is_there = terminal.is_there();
    Console console(ReportOptions{});
    console.progress("s3://b/\x1b]0;title\a\n" + std::string(80, 'x'));
    shown = terminal.shown();
  }
  ::setenv("TERM", former.c_str(), 1);
  if (!is_there) GTEST_SKIP() << "no pseudo terminal here";
  EXPECT_EQ(shown, "\r\x1b[K" + ("s3://b/^[]0;title^G^J" + std::string(80, 'x')).substr(0, 39));
}

}  // namespace
}  // namespace dtrain::cli
