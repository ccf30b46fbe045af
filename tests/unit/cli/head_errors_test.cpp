#include "cli/head_errors.hpp"

#include <gtest/gtest.h>

namespace dtrain::cli {
namespace {

TEST(HeadErrors, BeginWithTheNumberOfTheProcess) {
  HeadErrors errors;
  EXPECT_EQ(errors.take("dtrain-pro"), "");
  EXPECT_EQ(errors.take("cess 47"), "");
  EXPECT_EQ(errors.process(), "");
  EXPECT_EQ(errors.take("11\nEpoch[0]\nEp"), "Epoch[0]\nEp");
  EXPECT_EQ(errors.process(), "4711");
  EXPECT_EQ(errors.take("och[1]\ndtrain-process 5\n"), "och[1]\ndtrain-process 5\n");
  EXPECT_EQ(errors.process(), "4711");
}

TEST(HeadErrors, ShowWhatTheShellWroteBefore) {
  HeadErrors errors;
  EXPECT_EQ(errors.take("hi\n"), "hi\n");
  EXPECT_EQ(errors.take("dtrain-process \ndtrain-process 1a\n"), "dtrain-process \ndtrain-process 1a\n");
  EXPECT_EQ(errors.take("bash: warning\ndtrain-process 12\nmore"), "bash: warning\nmore");
  EXPECT_EQ(errors.process(), "12");
  EXPECT_EQ(errors.end(), "");
}

TEST(HeadErrors, LoseNothingWhereNoProcessBegins) {
  HeadErrors errors;
  EXPECT_EQ(errors.take("sh: no such\nfile"), "sh: no such\n");
  EXPECT_EQ(errors.end(), "file");
  EXPECT_EQ(errors.process(), "");
}

}  // namespace
}  // namespace dtrain::cli
