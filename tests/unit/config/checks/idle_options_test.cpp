#include "config/checks/idle_options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

namespace dtrain::config {
namespace {

using GivenTexts = std::vector<std::pair<const char*, const char*>>;

std::vector<std::string> idle_among(const GivenTexts& given) {
  TrainOptions options;
  OptionSet set;
  bind(set, options);
  for (const auto& [name, text] : given) {
    Option& option = *set.find(name);
    option.set(text);
    option.source = Source::flag;
  }
  return idle_options(options, set);
}

using Lines = std::vector<std::string>;

TEST(IdleOptions, NameTheOptionThatTheyNeed) {
  EXPECT_EQ(idle_among({{"ema-warmup", "true"}}), Lines{"--ema-warmup has no effect without --ema"});
  EXPECT_EQ(idle_among({{"mom", "0.8"}, {"optimizer", "adamw"}}),
            Lines{"--mom has no effect without --optimizer sgd, nag, muon, lars or signum"});
  EXPECT_EQ(idle_among({{"lr-final", "0.1"}, {"warmup-lr", "0.01"}}),
            (Lines{"--lr-final has no effect without --lr-schedule cosine, one-cycle or poly",
                   "--warmup-lr has no effect without --warmup-epochs"}));
  EXPECT_EQ(idle_among({{"rand-augment-ops", "3"}, {"auto-augment", "trivial"}}),
            Lines{"--rand-augment-ops has no effect without --auto-augment rand"});
}

TEST(IdleOptions, ACheckpointThatIsResumedMayHaveAnAverageOfItsOwn) {
  EXPECT_EQ(idle_among({{"ema-warmup", "true"}, {"resume", "true"}}), Lines{});
}

TEST(IdleOptions, AreThoseOfANetworkBesideAFileOfOne) {
  const GivenTexts given = {{"num-layers", "50"}, {"backbone", "resnet-18"}, {"proposals", "8"},  {"anchor-size", "16"},
                            {"width", "32"},      {"batch-norm", "true"},    {"drop-path", "0.3"}};
  for (const auto& [name, text] : given) {
    EXPECT_EQ(idle_among({{"network", "vgg"}, {name, text}}), Lines{}) << name;
    for (const char* file : {"g.json", "g.onnx"}) {
      EXPECT_EQ(idle_among({{"network", file}, {name, text}}),
                Lines{"--" + std::string(name) + " has no effect without a --network by its name"});
    }
  }
}

TEST(IdleOptions, EachHasALineAlone) {
  const GivenTexts alone = {{"ema-warmup", "true"},
                            {"min-random-area", "0.5"},
                            {"max-random-area", "0.5"},
                            {"min-random-aspect-ratio", "0.5"},
                            {"rand-augment-ops", "3"},
                            {"rand-augment-magnitude", "3"},
                            {"random-erasing-mode", "rand"},
                            {"lr-final", "0.1"},
                            {"lr-cycles", "2"},
                            {"lr-rise", "0.1"},
                            {"lr-power", "3"},
                            {"warmup-strategy", "sqrt"},
                            {"warmup-lr", "0.01"},
                            {"muon-steps", "4"},
                            {"muon-coefficients", "3,-4,2"},
                            {"muon-rest-mom", "0.8"}};
  for (const auto& [name, text] : alone) EXPECT_EQ(idle_among({{name, text}}).size(), 1u) << name;
}

TEST(IdleOptions, AreThoseOfColorsWithGreyImages) {
  for (const GivenTexts& colors :
       {GivenTexts{{"pca-noise", "0.1"}}, {{"saturation", "0.4"}}, {{"max-random-h", "9"}}, {{"max-random-s", "9"}}}) {
    const auto& [name, text] = colors.front();
    EXPECT_EQ(idle_among({{name, text}, {"image-shape", "1,28,28"}}),
              Lines{"--" + std::string(name) + " has no effect without images of 3 channels"});
    EXPECT_EQ(idle_among({{name, text}, {"image-shape", "3,28,28"}}), Lines{}) << name;
    EXPECT_EQ(idle_among({{name, "0"}, {"image-shape", "1,28,28"}}), Lines{}) << name;
    EXPECT_EQ(idle_among({{name, text}, {"image-shape", "1,28,28"}, {"network", "g.json"}}), Lines{}) << name;
  }
}

TEST(IdleOptions, AReflectionNeedsAPadding) {
  EXPECT_EQ(idle_among({{"reflect-pad", "1"}, {"pad-size", "0"}}),
            Lines{"--reflect-pad has no effect without --pad-size"});
  EXPECT_EQ(idle_among({{"reflect-pad", "0"}, {"pad-size", "0"}}), Lines{});
  EXPECT_EQ(idle_among({{"reflect-pad", "1"}, {"pad-size", "4"}}), Lines{});
}

TEST(IdleOptions, NameAScheduleThatTheRunDoesNotReach) {
  const GivenTexts steps = {{"num-epochs", "19"}, {"lr-step-epochs", "20,30"}},
                   warm_up = {{"num-epochs", "3"}, {"warmup-epochs", "5"}};
  EXPECT_EQ(idle_among(steps),
            Lines{"--lr-step-epochs 20,30 and --num-epochs 19: the run ends before the learning rate changes"});
  EXPECT_EQ(idle_among(warm_up),
            Lines{"--warmup-epochs 5 and --num-epochs 3: the run ends before the learning rate reaches --lr"});
  for (GivenTexts unmeant : {steps, warm_up}) {
    unmeant.emplace_back("benchmark", "1");
    EXPECT_EQ(idle_among(unmeant), Lines{});
    unmeant.back() = {"num-epochs", "0"};
    EXPECT_EQ(idle_among(unmeant), Lines{});
  }
  EXPECT_EQ(idle_among({{"num-epochs", "20"}, {"lr-step-epochs", "10,30"}}), Lines{});
  EXPECT_EQ(idle_among({{"num-epochs", "20"}, {"lr-step-epochs", "20"}}), Lines{}) << "the run that resumes needs it";
  EXPECT_EQ(idle_among({{"num-epochs", "20"}, {"lr-step-epochs", ""}}), Lines{});
}

TEST(IdleOptions, NameAStepWithinTheWarmUp) {
  for (const char* steps : {"1", "2", "1,9"}) {
    EXPECT_EQ(idle_among({{"num-epochs", "20"}, {"warmup-epochs", "2"}, {"lr-step-epochs", steps}}),
              Lines{fmt::format("--warmup-epochs 2 and --lr-step-epochs {}: the first step comes before the learning "
                                "rate has reached --lr",
                                steps)});
  }
  EXPECT_EQ(idle_among({{"num-epochs", "20"}, {"warmup-epochs", "2"}, {"lr-step-epochs", "3"}}), Lines{});
  EXPECT_EQ(idle_among({{"num-epochs", "20"}, {"warmup-epochs", "2"}, {"lr-schedule", "cosine"}}), Lines{});
}

TEST(IdleOptions, AScheduleOfARecipeMayGoBeyondTheRun) {
  TrainOptions options;
  OptionSet set;
  bind(set, options);
  set.apply_preset();
  set.find("num-epochs")->set("1");
  set.find("num-epochs")->source = Source::flag;
  ASSERT_GT(options.schedule.boundaries.front(), 1);
  EXPECT_EQ(idle_options(options, set), Lines{});
}

TEST(IdleOptions, AreSilentWhereTheyHaveAnEffect) {
  for (const GivenTexts& given : {GivenTexts{{"ema-warmup", "true"}, {"ema", "0.99"}},
                                  {{"min-random-area", "0.3"}, {"random-resized-crop", "1"}},
                                  {{"rand-augment-magnitude", "5"}, {"auto-augment", "rand"}},
                                  {{"random-erasing-mode", "rand"}, {"random-erasing", "0.5"}},
                                  {{"lr-factor", "0.5"}, {"lr-step-epochs", "1,2"}},
                                  {{"lr-final", "0.1"}, {"lr-cycles", "2"}, {"lr-schedule", "cosine"}},
                                  {{"lr-rise", "0.1"}, {"lr-schedule", "one-cycle"}},
                                  {{"warmup-lr", "0.01"}, {"warmup-epochs", "2"}},
                                  {{"mom", "0.8"}},
                                  {{"mom", "0.8"}, {"muon-steps", "4"}, {"optimizer", "muon"}}})
    EXPECT_EQ(idle_among(given), Lines{}) << given.front().first;
}

TEST(IdleOptions, ThoseOfARecipeAreNotTheUsersChoice) {
  TrainOptions options;
  OptionSet set;
  bind(set, options);
  set.find("recipe")->set("speednet");
  set.find("recipe")->source = Source::flag;
  set.apply_preset();
  set.find("optimizer")->set("adamw");
  EXPECT_EQ(idle_options(options, set), Lines{});
}

}  // namespace
}  // namespace dtrain::config
