#include "config/checks/optimizer.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "config/finetune.hpp"

namespace dtrain::config {
namespace {

using GivenTexts = std::vector<std::pair<const char*, const char*>>;

struct Settled {
  explicit Settled(const GivenTexts& given) {
    bind(set, options);
    for (const char* chooser : {"recipe", "network"}) give(given, chooser);
    set.apply_preset();
    for (const auto& [name, text] : given) give(given, name);
    said = settle_optimizer(set, options);
  }
  void give(const GivenTexts& given, std::string_view wanted) {
    for (const auto& [name, text] : given) {
      if (name != wanted) continue;
      Option& option = *set.find(name);
      option.set(text);
      option.source = Source::flag;
      option.origin = "--" + std::string(name);
    }
  }
  TrainOptions options;
  OptionSet set;
  std::string said;
};

TEST(OptimizerOfRun, ADetectorTakesTheRateAndDecayThatAreUsualForSgd) {
  const Settled run({{"network", "retinanet"}, {"optimizer", "sgd"}, {"batch-size", "16"}});
  EXPECT_DOUBLE_EQ(run.options.schedule.base, 0.02);
  EXPECT_FLOAT_EQ(run.options.optimizer.weight_decay, 1e-4f);
  EXPECT_EQ(run.said,
            "--optimizer sgd: --lr 0.02 instead of 0.0005, --wd 0.0001 instead of 0.01; --recipe detection "
            "is meant for adamw");
}

TEST(OptimizerOfRun, OfADetectorWithoutAUsualRateOnlyTheDecayChanges) {
  const Settled run({{"network", "mask-rcnn"}, {"optimizer", "lamb"}});
  EXPECT_DOUBLE_EQ(run.options.schedule.base, 0.0005);
  EXPECT_FLOAT_EQ(run.options.optimizer.weight_decay, nn::Optimizer{}.weight_decay);
}

TEST(OptimizerOfRun, FactorsForMuonGiveWay) {
  const Settled run({{"recipe", "speednet"}, {"optimizer", "sgd"}});
  EXPECT_EQ(run.options.optimizer.bias_lr_factor, 1);
  EXPECT_EQ(run.options.optimizer.head_lr_factor, 1);
  EXPECT_FLOAT_EQ(run.options.optimizer.weight_decay, 1e-4f);
  EXPECT_DOUBLE_EQ(run.options.schedule.base, 0.24);
  EXPECT_EQ(run.said,
            "--optimizer sgd: --wd 0.0001 instead of 0.0167, --bias-lr-factor 1 instead of 110, "
            "--head-lr-factor 1 instead of 6.9; --recipe speednet is meant for muon");
}

TEST(OptimizerOfRun, WhatTheUserChoseStays) {
  const Settled run({{"recipe", "detection"}, {"optimizer", "nag"}, {"wd", "0.003"}, {"lr", "0.005"}});
  EXPECT_FLOAT_EQ(run.options.optimizer.weight_decay, 0.003f);
  EXPECT_DOUBLE_EQ(run.options.schedule.base, 0.005);
  EXPECT_EQ(run.said, "");
}

TEST(OptimizerOfRun, NumbersForTheRecipesOwnOptimizerStay) {
  for (const GivenTexts& given : {GivenTexts{{"recipe", "detection"}},
                                  {{"recipe", "detection"}, {"optimizer", "adamw"}},
                                  {{"recipe", "cifar10"}, {"optimizer", "sgd"}}}) {
    const Settled run(given);
    EXPECT_EQ(run.said, "");
    EXPECT_EQ(run.options.optimizer.weight_decay, given.front().second == std::string("detection") ? 0.01f : 1e-4f);
  }
}

TEST(OptimizerOfRun, RecipesForSgdHaveNoNumbersThatAnotherOptimizerCannotUse) {
  for (const char* recipe : {"cifar10", "imagenet", "mnist"}) {
    const Settled plain(GivenTexts{{"recipe", recipe}}), run({{"recipe", recipe}, {"optimizer", "adam"}});
    EXPECT_EQ(run.said, "") << recipe;
    EXPECT_EQ(run.options.schedule.base, plain.options.schedule.base);
    EXPECT_EQ(run.options.optimizer.weight_decay, plain.options.optimizer.weight_decay);
  }
}

TEST(OptimizerOfRun, WhatFinetuneChoseStays) {
  Settled run(GivenTexts{{"network", "retinanet"}});
  for (const auto& [name, text] : GivenTexts{{"optimizer", "nag"}, {"wd", "0.002"}, {"lr", "0.03"}}) {
    Option& option = *run.set.find(name);
    option.set(text);
    option.source = name == std::string("optimizer") ? Source::flag : Source::recipe;
    option.origin = "--finetune";
  }
  EXPECT_EQ(settle_optimizer(run.set, run.options), "");
  EXPECT_FLOAT_EQ(run.options.optimizer.weight_decay, 0.002f);
}

}  // namespace
}  // namespace dtrain::config
