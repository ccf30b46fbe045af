#include "spec/queued_attempt.hpp"

#include <gtest/gtest.h>

namespace dtrain::job {
namespace {

const auto kLacks = []() -> int { throw net::NoCredentials("no AWS credentials", "aws sso login"); };
const auto kRefuses = []() -> int { throw UsageError("--model-prefix: has checkpoints already"); };

ExitCode code_of_error(bool is_attempt, int (*work)()) {
  try {
    with_passing_refusals(is_attempt, work);
  } catch (const Error& error) {
    return error.exit_code();
  }
  return ExitCode::ok;
}

// A queue ends a job whose command is refused (usage), and tries again one that a machine refused.
TEST(QueuedAttempt, TheWantOfCredentialsIsNoRefusalOfItsCommand) {
  EXPECT_EQ(code_of_error(true, kLacks), ExitCode::refused);
  EXPECT_EQ(code_of_error(true, kRefuses), ExitCode::usage);
  EXPECT_EQ(code_of_error(false, kLacks), ExitCode::usage) << "a user reads it at once";
  EXPECT_EQ(with_passing_refusals(true, [] { return 7; }), 7);
}

TEST(QueuedAttempt, TheWordsAboutCredentialsStay) {
  try {
    with_passing_refusals(true, kLacks);
    FAIL();
  } catch (const RemoteError& error) {
    EXPECT_STREQ(error.what(), "no AWS credentials");
    EXPECT_EQ(error.hint(), "aws sso login");
  }
}

}  // namespace
}  // namespace dtrain::job
