#include "cli/commands/data/pack_command.hpp"

#include <gtest/gtest.h>

namespace dtrain::cli {
namespace {

TEST(PackCommand, NamesASmallerBatchForFewPictures) {
  EXPECT_EQ(small_set_options(1), " --batch-size 4 --lr 0.01");
  EXPECT_EQ(small_set_options(36), " --batch-size 4 --lr 0.01");
  EXPECT_EQ(small_set_options(300), " --batch-size 32 --lr 0.03");
  EXPECT_EQ(small_set_options(1023), " --batch-size 64 --lr 0.04");
  EXPECT_EQ(small_set_options(1024), "") << "the usual batch will do";
}

}  // namespace
}  // namespace dtrain::cli
