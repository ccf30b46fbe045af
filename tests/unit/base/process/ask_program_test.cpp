#include <gtest/gtest.h>
#include <stdlib.h>

#include <tuple>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

using namespace std::chrono_literals;

Spawn shell(const std::string& script) { return {.executable = "/bin/sh", .arguments = {"sh", "-c", script}}; }

TEST(AskProgram, GivesWhatIsWrittenAndTheCode) {
  const auto answer = try_asking(shell("echo out; echo err >&2; exit 3"), 60s);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->output, "out\n");
  EXPECT_EQ(answer->errors, "err\n");
  EXPECT_EQ(answer->code, 3);
}

TEST(AskProgram, CountsASignalFrom128) {
  const auto answer = try_asking(shell("kill -TERM $$"), 60s);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, 128 + 15);
}

TEST(AskProgram, WaitsForTheProgramButNotForWhatItLeftBehind) {
  const auto answer = try_asking(shell("sleep 300 & echo $!"), 60s);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(try_asking(shell("kill " + answer->output), 60s));
}

TEST(AskProgram, GivesNothingWhereTheTimeIsOver) { EXPECT_FALSE(try_asking(shell("sleep 300"), 50ms)); }

TEST(AskProgram, EndsOneThatIsNotWantedAnyMore) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(try_asking(shell("sleep 300"), 300s, stop.get_token()));
}

TEST(AskProgram, EndsOneWhoseAnswerIsNotWantedAnyMore) {
  int asked = 0;
  EXPECT_FALSE(try_asking(shell("sleep 300"), 300s, [&] { return ++asked == 3; }));
}

TEST(AskProgram, EndsOneThatWritesWithoutEnd) { EXPECT_FALSE(try_asking(shell("yes more"), 300s)); }

TEST(AskProgram, PassesNoCredentials) {
  ::setenv("DTRAIN_TEST_SECRET", "s3cret", 1);
  const ProgramAnswer answer = ask_program({"/usr/bin/env"});
  ::unsetenv("DTRAIN_TEST_SECRET");
  EXPECT_EQ(answer.output.find("s3cret"), answer.output.npos);
  EXPECT_NE(answer.output.find("PATH="), answer.output.npos);
}

TEST(AskProgram, NamesTheProgramThatIsNotThereOrTooSlow) {
  EXPECT_THROW(std::ignore = ask_program({"/nowhere/at/all"}), Error);
  try {
    std::ignore = ask_program({"/bin/sleep", "300"}, 50ms);
    FAIL() << "it answered";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/bin/sleep did not answer within 50 ms");
  }
}

}  // namespace
}  // namespace dtrain
