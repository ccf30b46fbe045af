#include <gtest/gtest.h>

#include <csignal>

#include <dtrain/base/process_end.hpp>

namespace dtrain {
namespace {

TEST(ProcessEnd, IsToldInWords) {
  EXPECT_EQ(describe_end(3, 0), "ended with exit code 3");
  EXPECT_EQ(describe_end(0, SIGKILL), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(describe_end(0, 35), "was killed by signal 35");  // a real-time signal
}

TEST(ProcessEnd, SignalsAreFoundByAnySpellingOfTheirName) {
  EXPECT_EQ(signal_number("TERM"), SIGTERM);
  EXPECT_EQ(signal_number("sigusr1"), SIGUSR1);
  EXPECT_EQ(signal_number("SIG"), std::nullopt);
  EXPECT_EQ(signal_number("NONE"), std::nullopt);
}

}  // namespace
}  // namespace dtrain
