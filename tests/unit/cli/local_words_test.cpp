#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"
#include "docs/local_words.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::cli {
namespace {

TEST(PlacesOf, ThePrefixIsAnOptionOrTheFirstWord) {
  const CommandTree tree;
  EXPECT_EQ(places_of(tree, "dtrain eval --top-k 2 m/net --load-epoch ").prefix, "m/net");
  EXPECT_EQ(places_of(tree, "dtrain train --model-prefix m/net --load-epoch ").prefix, "m/net");
  EXPECT_EQ(places_of(tree, "dtrain train --lr 1 --model-prefix=m/net --load-epoch ").prefix, "m/net");
  EXPECT_EQ(places_of(tree, "dtrain train --load-epoch ").prefix, "");
}

TEST(PlacesOf, WordsHoldBlanksWhereLineFeedsSeparateThem) {
  const CommandTree tree;
  EXPECT_EQ(places_of(tree, "dtrain\neval\nmy nets/net\n--load-epoch").prefix, "my nets/net");
  EXPECT_EQ(places_of(tree, "dtrain\nhosts\nremove\n--job-dir\nmy job\nh").job, "my job");
}

TEST(PlacesOf, TheJobIsAnOptionOfAGroupedCommand) {
  const CommandTree tree;
  EXPECT_EQ(places_of(tree, "dtrain hosts remove --job-dir job ").job, "job");
  EXPECT_EQ(places_of(tree, "dtrain hosts remove --job-dir ").job, "");
  EXPECT_EQ(places_of(tree, "dtrain hosts").job, "");
  EXPECT_EQ(places_of(tree, "").job, "");
}

TEST(LocalWords, OfANetworkAreItsNameOrAFileThatDescribesIt) {
  const TemporaryFolder folder;
  for (const char* name : {"own.json", "own.onnx", "own.txt"}) write_file_atomic(folder / name, "");
  const LocalPlaces places{.here = folder / ""};
  EXPECT_EQ(local_words("networks", "own", places), (std::vector<std::string>{"own.json", "own.onnx"}));
  EXPECT_EQ(local_words("networks", "resnet1", places).front(), "resnet101");
}

TEST(LocalWords, OfAJobAreItsFolderBesideOthersThatCannotBeLookedInto) {
  const TemporaryFolder folder;
  make_folder(folder / "job1");
  write_file_atomic(folder / "job1" / "host_worker", "h1\n");
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(local_words("jobs", "", {.here = folder / ""}), std::vector<std::string>{"job1"});
}

TEST(LocalWords, OfAnEpochAreTheBestOneOnlyWhereTheRunLookedForIt) {
  const TemporaryFolder folder;
  const LocalPlaces places{.here = folder / "", .prefix = "m"};
  EXPECT_TRUE(local_words("epochs", "", places).empty());
  train::Checkpoint checkpoint = train::small_checkpoint();
  train::save_checkpoint({folder / "m", 1, 0}, checkpoint);
  EXPECT_EQ(local_words("epochs", "", places), std::vector<std::string>{"1"});
  checkpoint.best = {.accuracy = 0.5, .epoch = 1};
  train::save_checkpoint({folder / "m", 2, 0}, checkpoint);
  EXPECT_EQ(local_words("epochs", "", places), (std::vector<std::string>{"1", "2", "best"}));
  checkpoint.best = {.accuracy = 0.5, .epoch = 7};  // which was removed
  train::save_checkpoint({folder / "m", 3, 0}, checkpoint);
  EXPECT_EQ(local_words("epochs", "b", places), std::vector<std::string>{});
}

}  // namespace
}  // namespace dtrain::cli
