#include "config/checks/pixel_scale.hpp"

#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

namespace dtrain::config {
namespace {

struct RunOfNetwork {
  explicit RunOfNetwork(const char* name, bool batch_norm = false)
      : graph(nn::build_network({.name = name, .image = {3, 32, 32}, .classes = 4, .batch_norm = batch_norm})) {
    bind(set, options);
  }
  void give(const char* name, const char* text, Source from = Source::flag) {
    Option& option = *set.find(name);
    option.set(text);
    option.source = from;
  }
  std::string warning() const { return undivided_pixels(graph, set, options).value_or(""); }

  nn::Graph graph;
  TrainOptions options;
  OptionSet set;
};

TEST(UndividedPixels, AreAWarningForANetworkThatNormalisesNothing) {
  for (const char* name : {"mlp", "lenet", "vgg", "squeezenet1_1"}) {
    const std::string warning = RunOfNetwork(name).warning();
    EXPECT_NE(warning.find("has no normalisation layer"), std::string::npos) << name;
    EXPECT_NE(warning.find("--rgb-std 255"), std::string::npos) << name;
  }
}

TEST(UndividedPixels, SuitANetworkWithNorms) {
  for (const char* name : {"resnet", "resnet-v1", "mobilenet", "convnext_tiny", "vit_b_16"}) {
    EXPECT_EQ(RunOfNetwork(name).warning(), "") << name;
  }
  EXPECT_EQ(RunOfNetwork("vgg", true).warning(), "");
}

TEST(UndividedPixels, SuitANetworkThatDividesThem) {
  nn::GraphBuilder builder("own", {3, 8, 8});
  const int scaled = builder.add("scale", nn::Scale{1.0f / 255}, {builder.input()});
  const int flat = builder.add("flat", nn::Flatten{}, {scaled});
  RunOfNetwork run("mlp");
  run.graph = builder.finish(builder.add("dense", nn::Dense{.out = 4}, {flat}));
  EXPECT_EQ(run.warning(), "");
}

TEST(UndividedPixels, AreNoWarningWhereTheUserOrARecipeChose) {
  for (const Source from : {Source::flag, Source::environment, Source::named_config, Source::recipe}) {
    for (const char* deviation : {"1", "58"}) {
      RunOfNetwork run("mlp");
      run.give("rgb-std", deviation, from);
      EXPECT_EQ(run.warning(), "");
    }
  }
}

TEST(UndividedPixels, AreNoWarningWhereNothingLearns) {
  for (const auto& [name, text] :
       {std::pair("num-epochs", "0"), std::pair("benchmark", "1"), std::pair("test-io", "1")}) {
    RunOfNetwork run("mlp");
    run.give(name, text);
    EXPECT_EQ(run.warning(), "") << name;
  }
}

// Weights that were read know their own pixels.
TEST(UndividedPixels, AreNoWarningWhereWeightsBroughtADeviation) {
  RunOfNetwork run("mlp");
  run.options.data.augment.std = {58.395f, 57.12f, 57.375f};
  EXPECT_EQ(run.warning(), "");
}

TEST(FaintErasing, IsAWarningWhereNothingDividesThePixels) {
  for (const char* mode : {"pixel", "rand"}) {
    RunOfNetwork run("resnet");
    run.give("random-erasing", "0.25");
    run.give("random-erasing-mode", mode);
    const std::string warning = faint_erasing(run.options).value_or("");
    EXPECT_NE(warning.find(std::string("--random-erasing-mode ") + mode), std::string::npos) << warning;
    EXPECT_NE(warning.find("give --rgb-std"), std::string::npos) << warning;
    run.give("rgb-std", "58");
    EXPECT_EQ(faint_erasing(run.options), std::nullopt);
  }
}

TEST(FaintErasing, IsNoWarningWithoutNoise) {
  RunOfNetwork run("resnet");
  EXPECT_EQ(faint_erasing(run.options), std::nullopt);
  run.give("random-erasing", "0.25");
  run.give("random-erasing-mode", "const");
  EXPECT_EQ(faint_erasing(run.options), std::nullopt);
}

}  // namespace
}  // namespace dtrain::config
