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

struct NamedNetwork {
  explicit NamedNetwork(const char* name) {
    choice.options.name = name;
    bind_image(set, data);
  }
  void give(const char* shape, Source from, const char* origin) {
    Option& option = *set.find("image-shape");
    option.set(shape);
    option.source = from;
    option.origin = origin;
  }
  std::string note() const { return unusual_image(choice, set, data.image).value_or(""); }
  // What error and hint say together.
  std::string refusal() {
    try {
      choose_graph(choice, set, data);
    } catch (const UsageError& error) {
      return std::string(error.what()) + "; " + error.hint();
    }
    return "accepted";
  }

  NetworkChoice choice;
  DataOptions data;
  OptionSet set;
};

TEST(NetworkChoice, NotesImagesOfAnotherSizeThanTheUsualOne) {
  NamedNetwork vit("vit_b_16");
  EXPECT_EQ(
      vit.note(),
      "vit_b_16 gets images of 28x28 pixels, as the default has them; its usual ones are --image-shape 3,224,224");
  vit.give("3,32,32", Source::recipe, "recipe speednet");
  EXPECT_EQ(vit.note(),
            "vit_b_16 gets images of 32x32 pixels, as --recipe speednet has them; its usual ones are --image-shape "
            "3,224,224");
  vit.give("3,224,224", Source::recipe, "recipe imagenet");
  EXPECT_EQ(vit.note(), "");
  for (const Source from : {Source::flag, Source::environment, Source::named_config}) {
    vit.give("3,32,32", from, "--image-shape");
    EXPECT_EQ(vit.note(), "");
  }
  EXPECT_NE(NamedNetwork("inception_v3").note().find("--image-shape 3,299,299"), std::string::npos);
  for (const char* own : {"resnet", "mlp", "retinanet", "g.json", "g.onnx"})
    EXPECT_EQ(NamedNetwork(own).note(), "") << own;
}

TEST(NetworkChoice, NamesTheUsualSizeWhereImagesAreTooSmall) {
  NamedNetwork vgg("vgg16");
  EXPECT_NE(vgg.refusal().find("does not fit an input of 1; give the usual size of vgg16: --image-shape 3,224,224"),
            std::string::npos)
      << vgg.refusal();
  vgg.choice.options.width = 3;
  EXPECT_EQ(vgg.refusal(), "vgg16 has no choice of setting 'width'; leave setting 'width' out");
  vgg.choice.options.width = 0;
  vgg.give("3,28,28", Source::flag, "--image-shape");
  EXPECT_EQ(vgg.refusal().find("usual size"), std::string::npos);
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
