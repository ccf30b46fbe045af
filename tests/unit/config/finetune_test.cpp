#include <gtest/gtest.h>

#include <map>

#include <dtrain/base/error.hpp>

#include "finetune.hpp"

namespace dtrain::config {
namespace {

std::map<std::string, std::string> choices(FinetuneFacts facts) {
  std::map<std::string, std::string> texts;
  for (const auto& [option, text] : finetune_choices(facts)) texts[option] = text;
  return texts;
}

FinetuneFacts facts_of(const char* network, int side, int classes, std::uint64_t pictures) {
  return {.network = {.name = network, .image = {3, side, side}, .classes = classes}, .pictures = pictures};
}

FinetuneFacts for_adam(FinetuneFacts facts) {
  facts.suits_adam = true;
  return facts;
}

struct Case {
  FinetuneFacts facts;
  std::map<std::string, std::string> expected;
};

TEST(Finetune, ChoosesByWeightsAndPictures) {
  const Case cases[] = {
      // Few pictures: the last layer alone.
      {facts_of("resnet50", 224, 5, 40),
       {{"network", "resnet50"}, {"global-batch", "8"}, {"num-epochs", "30"}, {"freeze", "backbone"}, {"lr", "0.025"}}},
      {facts_of("resnet50", 224, 2, 100),
       {{"global-batch", "8"},
        {"num-epochs", "30"},
        {"warmup-epochs", "3"},
        {"lr", "0.005"},
        {"head-lr-factor", "10"}}},
      {facts_of("resnet50", 224, 10, 1000),
       {{"global-batch", "32"},
        {"num-epochs", "19"},
        {"lr", "0.01"},
        {"random-resized-crop", "1"},
        {"optimizer", "sgd"}}},
      {facts_of("resnet50", 224, 10, 1000000), {{"global-batch", "32"}, {"num-epochs", "5"}}},
      // Small images are shifted, and more of them fit into a step.
      {facts_of("resnet-v1", 32, 10, 50000), {{"global-batch", "128"}, {"pad-size", "4"}, {"lr", "0.02"}}},
      {for_adam(facts_of("m.onnx", 224, 10, 1000)), {{"optimizer", "adamw"}, {"lr", "0.0001"}, {"wd", "0.05"}}},
      {for_adam(facts_of("m.onnx", 224, 10, 1)),
       {{"optimizer", "adamw"}, {"global-batch", "8"}, {"freeze", "backbone"}, {"lr", "0.0005"}}},
  };
  for (const Case& each : cases) {
    const auto chosen = choices(each.facts);
    for (const auto& [option, text] : each.expected) {
      const auto found = chosen.find(option);
      EXPECT_EQ(found == chosen.end() ? "(not chosen)" : found->second, text)
          << option << " of " << each.facts.network.name << ", " << each.facts.pictures << " pictures";
    }
    EXPECT_NE(chosen.contains("freeze"), chosen.contains("head-lr-factor"));
    EXPECT_NE(chosen.at("pad-size") == "0", !chosen.contains("random-resized-crop"));
  }
}

TEST(Finetune, KnowsByTheLayersWhatSuitsAdam) {
  const std::pair<const char*, bool> networks[] = {
      {"vit_b_16", true}, {"convnext_tiny", true}, {"resnet18", false}, {"efficientnet_b0", false}, {"vgg", false}};
  for (const auto& [name, expected] : networks) {
    nn::Graph graph = nn::build_network({.name = name, .image = {3, 224, 224}, .classes = 10});
    graph.name = "model";
    EXPECT_EQ(suits_adam(graph), expected) << name;
  }
}

TEST(Finetune, FollowsWhatTheUserChose) {
  FinetuneFacts facts = facts_of("resnet50", 224, 10, 1000);
  facts.batch = 64;
  EXPECT_EQ(choices(facts).at("lr"), "0.014");
  EXPECT_EQ(choices(facts).at("num-epochs"), "30");
  facts.epochs = 100;
  EXPECT_EQ(choices(facts).at("warmup-epochs"), "10");
  facts.head_alone = true;
  EXPECT_EQ(choices(facts).at("lr"), "0.071");
}

TEST(Finetune, HasRateAndDecayOfTheOptimizerThatTheUserChose) {
  FinetuneFacts facts = facts_of("resnet50", 224, 10, 1000);
  const auto rates = [&](nn::OptimizerKind kind) {
    facts.optimizer = kind;
    const auto chosen = choices(facts);
    return chosen.at("lr") + " " + chosen.at("wd");
  };
  EXPECT_EQ(rates(nn::OptimizerKind::nag), "0.01 0.0001");
  EXPECT_EQ(rates(nn::OptimizerKind::adamw), "0.0001 0.05");
  EXPECT_EQ(rates(nn::OptimizerKind::adam), "0.0001 0.0001");
  facts.suits_adam = true;
  EXPECT_EQ(rates(nn::OptimizerKind::sgd), "0.01 0.0001");
  facts.head_alone = true;
  EXPECT_EQ(rates(nn::OptimizerKind::sgd), "0.05 0.0001");
  EXPECT_EQ(rates(nn::OptimizerKind::adamw), "0.001 0.05");
}

TEST(Finetune, GivesADetectorTheDecayOfTheOptimizerThatTheUserChose) {  // that of the recipe is meant for adamw
  FinetuneFacts facts = facts_of("retinanet", 512, 6, 1000);
  facts.has_rate = true;
  facts.optimizer = nn::OptimizerKind::sgd;
  EXPECT_EQ(choices(facts).at("wd"), "0.0001");
  EXPECT_FALSE(choices(facts).contains("lr"));
  facts.optimizer = nn::OptimizerKind::adamw;
  EXPECT_EQ(choices(facts).at("wd"), "0.01");
}

TEST(Finetune, GuessesNoRateOfAnOptimizerThatHasNoUsualOne) {
  FinetuneFacts facts = facts_of("resnet50", 224, 10, 1000), detector = facts_of("retinanet", 512, 6, 1000);
  facts.optimizer = detector.optimizer = nn::OptimizerKind::lamb;
  for (FinetuneFacts* each : {&facts, &detector}) {
    EXPECT_THROW(choices(*each), UsageError);
    each->has_rate = true;
    EXPECT_FALSE(choices(*each).contains("lr"));
    EXPECT_FALSE(choices(*each).contains("wd"));
  }
}

TEST(Finetune, WarmsNoCycleUpThatRisesByItself) {
  for (const char* network : {"resnet50", "retinanet"}) {
    FinetuneFacts facts = facts_of(network, 512, 10, 1000);
    EXPECT_TRUE(choices(facts).contains("warmup-epochs"));
    facts.one_cycle = true;
    EXPECT_FALSE(choices(facts).contains("warmup-epochs"));
  }
}

TEST(Finetune, GivesADetectorTheRatesOfItsRecipeAndEpochsByItsPictures) {
  FinetuneFacts facts = facts_of("mask-rcnn", 512, 6, 1000);
  facts.network.backbone = "resnet-18";
  facts.network.proposals = 32;
  facts.network.anchor_size = 16;
  const std::map<std::string, std::string> expected = {
      {"network", "mask-rcnn"}, {"backbone", "resnet-18"}, {"proposals", "32"},
      {"anchor-size", "16"},    {"global-batch", "8"},     {"num-epochs", "12"},
      {"warmup-epochs", "0.6"}, {"optimizer", "adamw"},    {"lr", "0.0005"},
      {"wd", "0.01"},           {"lr-schedule", "cosine"}};
  EXPECT_EQ(choices(facts), expected);  // and neither label smoothing nor crops nor a factor of the last layer
  facts.batch = 2;
  EXPECT_EQ(choices(facts).at("lr"), "0.00025");
  facts.pictures = 100000;
  EXPECT_EQ(choices(facts).at("num-epochs"), "6");
  facts.pictures = 12;
  EXPECT_EQ(choices(facts).at("num-epochs"), "36");
  EXPECT_EQ(choices(facts).at("freeze"), "backbone");
}

TEST(Finetune, LooksIntoAsManyRegionsAsTheRecipeWhereTheWeightsDoNotSay) {
  EXPECT_EQ(choices(facts_of("faster-rcnn", 512, 6, 1000)).at("proposals"), "128");
  EXPECT_FALSE(choices(facts_of("retinanet", 512, 6, 1000)).contains("proposals"));
}

TEST(Finetune, NamesDepthAndWidthOfNetworksThatHaveThem) {
  FinetuneFacts facts = facts_of("resnet-v1", 32, 10, 1000);
  EXPECT_FALSE(choices(facts).contains("num-layers"));
  facts.network.num_layers = 20;
  facts.network.width = 32;
  EXPECT_EQ(choices(facts).at("num-layers"), "20");
  EXPECT_EQ(choices(facts).at("width"), "32");
}

}  // namespace
}  // namespace dtrain::config
