#include <gtest/gtest.h>

#include "docs/local_words.hpp"

namespace dtrain::cli {
namespace {

TEST(PlacesOf, ThePrefixIsAnOptionOrTheFirstWord) {
  const CommandTree tree;
  EXPECT_EQ(places_of(tree, "dtrain eval --top-k 2 m/net --load-epoch ").prefix, "m/net");
  EXPECT_EQ(places_of(tree, "dtrain train --model-prefix m/net --load-epoch ").prefix, "m/net");
  EXPECT_EQ(places_of(tree, "dtrain train --lr 1 --model-prefix=m/net --load-epoch ").prefix, "m/net");
  EXPECT_EQ(places_of(tree, "dtrain train --load-epoch ").prefix, "");
}

TEST(PlacesOf, TheJobIsAnOptionOfAGroupedCommand) {
  const CommandTree tree;
  EXPECT_EQ(places_of(tree, "dtrain hosts remove --job-dir job ").job, "job");
  EXPECT_EQ(places_of(tree, "dtrain hosts remove --job-dir ").job, "");
  EXPECT_EQ(places_of(tree, "dtrain hosts").job, "");
  EXPECT_EQ(places_of(tree, "").job, "");
}

}  // namespace
}  // namespace dtrain::cli
