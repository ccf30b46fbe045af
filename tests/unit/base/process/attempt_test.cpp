#include <gtest/gtest.h>

#include <csignal>
#include <new>
#include <tuple>

#include <dtrain/base/signals.hpp>

namespace dtrain {
namespace {

TEST(AttemptTest, GivesTheTextAndTheHintOfAFailure) {
  const auto failure = attempt([] { throw RemoteError("no answer", "try later"); });
  ASSERT_TRUE(failure);
  EXPECT_STREQ(failure->what(), "no answer");
  EXPECT_EQ(failure->hint(), "try later");
}

TEST(AttemptTest, GivesNothingForWorkThatIsDone) {
  bool done = false;
  EXPECT_FALSE(attempt([&] { done = true; }));
  EXPECT_TRUE(done);
}

TEST(AttemptTest, ThrowsOnWhatASignalEnded) {
  EXPECT_THROW(std::ignore = attempt([] { throw Stopped("stopped"); }), Stopped);
  EXPECT_THROW(std::ignore = attempt([] { throw Interrupted(SIGINT, "interrupted"); }), Interrupted);
}

TEST(AttemptTest, ThrowsOnWhatIsNoError) {
  EXPECT_THROW(std::ignore = attempt([] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace dtrain
