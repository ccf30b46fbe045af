#include <gtest/gtest.h>

#include "coordinator/machine_limits.hpp"

namespace dtrain::job {
namespace {

TEST(MachineLimits, ALoadThatFitsIsTaken) {
  EXPECT_FALSE(refusal_of({.hosts = 1, .ranks = 1}, {.files = 256, .processors = 1}));
  EXPECT_FALSE(refusal_of({.hosts = 100, .ranks = 100}, {.files = 1024, .processors = 2}));
}

TEST(MachineLimits, MoreRanksThanProcessorsCanStartAreRefused) {
  const auto refusal = refusal_of({.hosts = 2000, .ranks = 2000}, {.files = 1'000'000, .processors = 2});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->what, "2000 ranks on this machine: it has 2 processors, and runs at most 160");
  EXPECT_FALSE(refusal_of({.hosts = 2000, .ranks = 2000, .is_here = false}, {.files = 1'000'000, .processors = 2}));
}

TEST(MachineLimits, FewOpenFilesAreRefusedWithTheNumberThatIsNeeded) {
  const auto refusal = refusal_of({.hosts = 2, .ranks = 2}, {.files = 16, .processors = 2});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->what, "a process may open 16 files here, but 2 ranks on 2 hosts need 64");
  EXPECT_EQ(refusal->hint, "`ulimit -n 64` before the command raises the limit");
}

}  // namespace
}  // namespace dtrain::job
