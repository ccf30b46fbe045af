#include "config/network_choice.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

nn::NetworkOptions vit(float drop_path) {
  return {.name = "vit_tiny_patch16_224", .image = {3, 32, 32}, .classes = 5, .drop_path = drop_path};
}

TEST(NetworkChoice, NamesWhatACheckpointsNetworkHasThatTheOptionsDoNot) {
  const nn::Graph saved = nn::build_network(vit(0.25f));
  const auto against = [&](const nn::NetworkOptions& mine) { return difference_of(saved, nn::build_network(mine)); };
  EXPECT_EQ(against(vit(0.25f)), "");
  EXPECT_EQ(against(vit(0.5f)), "it was trained with another --drop-path");
  EXPECT_EQ(against(vit(0)), "it was trained with another --drop-path");
  nn::NetworkOptions mine = vit(0.25f);
  mine.classes = 7;
  EXPECT_EQ(against(mine), "it has 5 classes, not 7");
  mine.image = {3, 64, 64};
  EXPECT_EQ(against(mine), "its images are 3,32,32, not 3,64,64");
}

TEST(NetworkChoice, NamesTheFirstLayerThatDiffers) {
  const auto one_layer = [](const char* name, int kernel) {
    nn::GraphBuilder builder("mine", {3, 8, 8});
    const int x = builder.add(name, nn::Convolution{.out = 4, .kernel_h = kernel, .kernel_w = kernel}, {0});
    return builder.finish(builder.add("fc", nn::Dense{5}, {x}));
  };
  EXPECT_EQ(difference_of(one_layer("a", 3), one_layer("a", 3)), "");
  EXPECT_EQ(difference_of(one_layer("a", 3), one_layer("a", 1)), "its layer a is another");
  EXPECT_EQ(difference_of(one_layer("a", 3), one_layer("b", 3)), "it has the layer a where they have b");
}

// MXNet's symbol, which holds no name of the whole.
TEST(NetworkChoice, FindsNoDifferenceInTheNameOfTheWhole) {
  const nn::Graph built = nn::build_network({.name = "mlp", .image = {3, 28, 28}});
  nn::Graph read = built;
  read.name = "mxnet-symbol";
  EXPECT_EQ(difference_of(read, built), "");
}

TEST(NetworkChoice, TakesADropPathBesideACheckpointThatHasIt) {
  const nn::Graph saved = nn::build_network(vit(0.25f)), plain = nn::build_network(vit(0));
  EXPECT_NO_THROW(require_drop_path(saved, 0.25f));
  EXPECT_NO_THROW(require_drop_path(plain, 0));
  EXPECT_THROW(require_drop_path(saved, 0), UsageError);
  EXPECT_THROW(require_drop_path(plain, 0.25f), UsageError);
  EXPECT_THROW(require_drop_path(nn::build_network({.name = "mlp", .image = {3, 28, 28}}), 0.25f), UsageError);
  nn::Graph of_a_file = nn::build_network({.name = "mlp", .image = {3, 28, 28}});
  of_a_file.name = "mine";
  EXPECT_NO_THROW(require_drop_path(of_a_file, 0));
  EXPECT_THROW(require_drop_path(of_a_file, 0.25f), UsageError);
}

}  // namespace
}  // namespace dtrain::config
