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

TEST(PackCommand, LetsTheNetworkSeeMostOfEachPicture) {
  EXPECT_EQ(picture_options(64, 64), "--image-shape 3,64,64 ");
  EXPECT_EQ(picture_options(0, 40), "");
  EXPECT_EQ(picture_options(224, 224), "");
  EXPECT_EQ(picture_options(256, 256), "--resize 256 --random-resized-crop 1 ");
  EXPECT_EQ(picture_options(0, 3024), "--resize 256 --random-resized-crop 1 ");
}

}  // namespace
}  // namespace dtrain::cli
