#include "net/ssh/login_text.hpp"

#include <gtest/gtest.h>

namespace dtrain::net::ssh {
namespace {

TEST(SshLoginText, EndsAtTheMark) {
  LoginText login;
  EXPECT_EQ(login.take("\nWelcome to h2\n"), "");
  EXPECT_FALSE(login.is_over());
  EXPECT_EQ(login.first_line(), "Welcome to h2");
  EXPECT_EQ(login.take("a\ndtrain-out"), "");
  EXPECT_EQ(login.take("put\n{\"a\":"), "{\"a\":");
  EXPECT_TRUE(login.is_over());
  EXPECT_EQ(login.take("1}\ndtrain-output\n"), "1}\ndtrain-output\n");
}

TEST(SshLoginText, MayEndInTheMiddleOfALine) {
  LoginText login;
  std::string output;
  for (const char c : std::string("hi dtrain-output dtrain-output\nout")) output += login.take(std::string(1, c));
  EXPECT_EQ(output, "out");
}

TEST(SshLoginText, MayBeMissing) {
  LoginText login;
  EXPECT_EQ(login.take("dtrain-output\nout\n"), "out\n");
  EXPECT_TRUE(login.is_over());
  EXPECT_EQ(LoginText().first_line(), "");
}

TEST(SshLoginText, MayBeLongAndNeverEnd) {
  LoginText login;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(login.take(std::string(1000, 'x')), "");
  EXPECT_EQ(login.first_line(), std::string(200, 'x'));
  EXPECT_EQ(login.take("dtrain-output\nout"), "out");
}

TEST(SshLoginText, IsShownWithoutControlSequences) { EXPECT_EQ(on_one_line("\x1b[1mHi\n there\r\n"), "[1mHi  there"); }

}  // namespace
}  // namespace dtrain::net::ssh
