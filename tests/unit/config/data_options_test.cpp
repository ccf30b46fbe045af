#include "config/data_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "config/resizing/aspect_groups.hpp"

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

TEST(DataOptions, OnlyTrainingKeepsDecodedPictures) {
  DataOptions options;
  EXPECT_EQ(training_loader(options, 0).decoded_cache, 0u);
  options.cache_decoded_gib = 1.5;
  EXPECT_EQ(training_loader(options, 0).decoded_cache, std::uint64_t{3} << 29);
  EXPECT_EQ(validation_loader(options).decoded_cache, 0u);
  options.cache_decoded_gib = 1e-30;
  EXPECT_EQ(training_loader(options, 0).decoded_cache, 1u) << "it changes pixels as any size does";
  options.cache_decoded_gib = data::kLoaderRanges.decoded_cache_gib.high;
  EXPECT_EQ(training_loader(options, 0).decoded_cache, std::uint64_t{1} << 46);
}

TEST(DataOptions, WindowsOfRandomSizeTakeThePaddingOfTheUserAlone) {
  for (const bool is_chosen : {false, true}) {
    DataOptions options;
    OptionSet set;
    bind_augmentation(set, options);
    options.augment.pad_size = 4;
    if (is_chosen) set.find("pad-size")->source = Source::flag;
    set.settle();
    EXPECT_EQ(options.augment.pad_size, 4) << "no window";
    options.augment.random_resized_crop = true;
    set.settle();
    EXPECT_EQ(options.augment.pad_size, is_chosen ? 4 : 0);
  }
}

TEST(DataOptions, AnIndexBehindAUrlLiesBesideItsRecords) {
  const Path records = "s3://bucket/d/p.rec";
  EXPECT_NO_THROW(require_index(Path("s3://bucket/d/p.idx"), records, "data-train-idx"));
  EXPECT_NO_THROW(require_index(std::nullopt, records, "data-train-idx"));
  for (const char* other : {"s3://bucket/other/p.idx", "p.idx"})
    EXPECT_THROW(require_index(Path(other), records, "data-train-idx"), UsageError) << other;
}

TEST(DataOptions, GroupsOfPicturesAreReadAndGoIntoTheCheckpoint) {
  DataOptions options;
  EXPECT_TRUE(aspect_groups_from("").empty());
  options.aspect_groups = aspect_groups_from("320x448, 448x320");
  EXPECT_EQ(options.aspect_groups, (std::vector<data::ScaledSize>{{320, 448}, {448, 320}}));
  EXPECT_EQ(aspect_groups_text(options.aspect_groups), "320x448,448x320");
  EXPECT_EQ(aspect_groups_of(preprocessing_of(options)), options.aspect_groups);
  options.aspect_groups.clear();
  EXPECT_TRUE(aspect_groups_of(preprocessing_of(options)).empty());
  for (const char* wrong : {"320", "320x", "320x450", "32x64", "320x448,320x448", "axb", "64x64x64"})
    EXPECT_THROW(aspect_groups_from(wrong), UsageError) << wrong;
}

}  // namespace
}  // namespace dtrain::config
