#include "config/checks/detector_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

// What is said of the one option that is given; empty: nothing.
std::string refusal_of(const char* name, const char* text, bool detects = true) {
  TrainOptions options;
  OptionSet set;
  bind(set, options);
  if (detects) options.data.detection.emplace();
  Option& option = *set.find(name);
  option.set(text);
  option.source = Source::flag;
  try {
    refuse_options_of_classifiers(options, set);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(DetectorOptions, OfAClassifierAreRefused) {
  EXPECT_EQ(refusal_of("random-crop", "1"), "--random-crop: a detector sees whole pictures");
  EXPECT_EQ(refusal_of("random-erasing", "0.5"), "--random-erasing: a detector sees whole pictures");
  EXPECT_EQ(refusal_of("reflect-pad", "1"), "--reflect-pad: a detector sees whole pictures");
  EXPECT_EQ(refusal_of("fill-value", "127"), "--fill-value: a detector's pictures are surrounded by zeros");
  EXPECT_EQ(refusal_of("loss", "ce"), "--loss: the log of a detector has its loss in any case");
  EXPECT_EQ(refusal_of("balanced-sampler", "1"), "--balanced-sampler: a picture of a detector shows several classes");
  EXPECT_EQ(refusal_of("top-k", "5"), "--top-k: a detector has an average precision in place of an accuracy");
  EXPECT_EQ(refusal_of("class-weights", "balanced"), "--class-weights: a detector's loss is its own");
  EXPECT_EQ(refusal_of("focal-gamma", "2"), "--focal-gamma: a detector's loss is its own");
}

TEST(DetectorOptions, ThatAskForWhatADetectorDoesAreTaken) {
  EXPECT_EQ(refusal_of("random-crop", "0"), "");
  EXPECT_EQ(refusal_of("random-erasing", "0"), "");
  EXPECT_EQ(refusal_of("balanced-sampler", "0"), "");
  EXPECT_EQ(refusal_of("reflect-pad", "0"), "");
  EXPECT_EQ(refusal_of("loss", ""), "");
  EXPECT_EQ(refusal_of("repeated-augment", "3"), "");
  EXPECT_EQ(refusal_of("top-k", "0"), "");
  EXPECT_EQ(refusal_of("random-mirror", "1"), "");
}

TEST(DetectorOptions, AreThoseOfAClassifierElsewhere) {
  EXPECT_EQ(refusal_of("random-crop", "1", false), "");
  EXPECT_EQ(refusal_of("class-weights", "balanced", false), "");
}

}  // namespace
}  // namespace dtrain::config
