#include "config/data_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

namespace dtrain::config {
namespace {

DataOptions for_network(const std::string& name) {
  DataOptions options;
  options.image = {3, 64, 64};
  suit_network(nn::build_network({.name = name, .image = options.image, .classes = 3, .backbone = "resnet-18"}),
               options);
  return options;
}

TEST(DataOptions, ADetectorOfMasksLearnsFromPixelsAndIsJudgedInTheOriginalPicture) {
  const DataOptions options = for_network("mask-rcnn");
  const data::DetectionInput training = training_loader(options, 0).detection.value();
  EXPECT_TRUE(training.masks);
  EXPECT_FALSE(training.runs);
  const data::DetectionInput validation = validation_loader(options).detection.value();
  EXPECT_FALSE(validation.masks);
  EXPECT_TRUE(validation.runs);
}

TEST(DataOptions, ADetectorOfBoxesAsksForNoMasks) {
  const DataOptions options = for_network("faster-rcnn");
  EXPECT_FALSE(training_loader(options, 0).detection.value().any_masks());
  EXPECT_FALSE(validation_loader(options).detection.value().any_masks());
}

}  // namespace
}  // namespace dtrain::config
