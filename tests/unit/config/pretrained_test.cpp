#include "config/pretrained.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/train/export.hpp>

#include "common/recording_reporter.hpp"
#include "config/network_choice.hpp"
#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::config {
namespace {

Path weights_with(const Path& folder, const char* preprocessing) {
  train::Checkpoint checkpoint = train::small_checkpoint();
  checkpoint.job.preprocessing = Json::parse(preprocessing, "test");
  train::export_safetensors(checkpoint, folder / "x.safetensors");
  return folder / "x.safetensors";
}

DataOptions suited(const Path& file, const std::string& network) {
  DataOptions data;
  OptionSet set;
  bind_image(set, data);
  data.augment.resize = 99;  // a recipe's
  suit_weights(file, network, set, data);
  return data;
}

constexpr const char* kClassifier =
    R"({"image_shape": [3, 40, 40], "rgb_mean": [1, 2, 3], "rgb_std": [4, 5, 6], "crop": "center"})";
constexpr const char* kDetector =
    R"({"image_shape": [3, 96, 64], "rgb_mean": [1, 2, 3], "rgb_std": [4, 5, 6], "crop": "none"})";

TEST(Pretrained, ADetectorTakesTheSizeOfImagesOfAnotherDetectorAlone) {
  const TemporaryFolder folder;
  EXPECT_EQ(suited(weights_with(folder.path(), kClassifier), "retinanet").image, (nn::Shape{3, 512, 512}));
  EXPECT_EQ(suited(weights_with(folder.path(), "null"), "mask-rcnn").image, (nn::Shape{3, 512, 512}));
  EXPECT_EQ(suited(weights_with(folder.path(), kDetector), "faster-rcnn").image, (nn::Shape{3, 96, 64}));
}

TEST(Pretrained, ADetectorTakesMeanAndDeviationOfAClassifier) {
  const TemporaryFolder folder;
  const DataOptions data = suited(weights_with(folder.path(), kClassifier), "retinanet");
  EXPECT_EQ(data.augment.mean, (std::array<float, 3>{1, 2, 3}));
  EXPECT_EQ(data.augment.std, (std::array<float, 3>{4, 5, 6}));
}

TEST(Pretrained, AClassifierTakesTheSizeOfAClassifiersImages) {
  const TemporaryFolder folder;
  EXPECT_EQ(suited(weights_with(folder.path(), kClassifier), "resnet18").image, (nn::Shape{3, 40, 40}));
  EXPECT_EQ(suited(weights_with(folder.path(), "null"), "resnet18").image, (nn::Shape{3, 224, 224}));
}

TEST(Pretrained, AClassifierResizesAsItsWeightsSay) {
  const TemporaryFolder folder;
  EXPECT_EQ(suited(weights_with(folder.path(), kClassifier), "resnet18").augment.resize, 0);
  const Path file = weights_with(folder.path(), R"({"image_shape": [3, 40, 40], "resize": 50, "crop": "center"})");
  EXPECT_EQ(suited(file, "resnet18").augment.resize, 50);
  DataOptions data;
  OptionSet set;
  bind_image(set, data);
  Option& shape = *set.find("image-shape");
  shape.set("3,80,80");
  shape.source = Source::flag;
  suit_weights(file, "resnet18", set, data);
  EXPECT_EQ(data.augment.resize, 100) << "the margin around the crop is a share of it";
}

TEST(Pretrained, TakesThePixelsOfImageNetForPublishedNetworksAlone) {
  const TemporaryFolder folder;
  const Path file = weights_with(folder.path(), "null");
  train::export_mxnet(train::small_checkpoint(), folder / "x", 1);
  EXPECT_EQ(suited(file, "resnet-v1.5").augment.std, (std::array{58.395f, 57.12f, 57.375f}));
  EXPECT_EQ(suited(file, "inception_v3").augment.std, (std::array{127.5f, 127.5f, 127.5f}));
  EXPECT_EQ(suited(file, "lenet").image, DataOptions{}.image);
  EXPECT_EQ(suited(folder / "x-0001.params", "resnet-v1").image, (nn::Shape{3, 224, 224}));
  for (const auto& [weights, network] : {std::pair(file, "lenet"), {folder / "x-0001.params", "resnet18"}}) {
    const DataOptions before, data = suited(weights, network);
    EXPECT_EQ(data.augment.mean, before.augment.mean) << network;
    EXPECT_EQ(data.augment.std, before.augment.std) << network;
    EXPECT_EQ(data.augment.resize, 99) << network;
  }
}

TEST(Pretrained, KnowsWhetherTheFileSaysHowPixelsArePrepared) {
  const TemporaryFolder folder;
  DataOptions data;
  OptionSet set;
  bind_image(set, data);
  EXPECT_TRUE(suit_weights(weights_with(folder.path(), kClassifier), "resnet18", set, data));
  EXPECT_FALSE(suit_weights(weights_with(folder.path(), "null"), "resnet18", set, data));
}

TEST(Pretrained, NotesThePixelsThatAreAssumedUnlessAllAreChosen) {
  DataOptions data;
  OptionSet set;
  bind_image(set, data);
  RecordingReporter reporter;
  note_assumed_pixels("w.npz", set, data, reporter);
  EXPECT_EQ(reporter.notes, std::vector<std::string>{
                                "w.npz does not say how its pixels are prepared: they are taken as by --image-shape "
                                "3,28,28 --rgb-mean 123.68,116.779,103.939 --rgb-std 1,1,1; these options choose "
                                "otherwise"});
  for (const char* name : {"image-shape", "rgb-mean", "rgb-std"}) set.find(name)->source = Source::flag;
  note_assumed_pixels("w.npz", set, data, reporter);
  EXPECT_EQ(reporter.notes.size(), 1u);
}

TEST(Pretrained, OfDtrainChooseTheWidthOfTheirNetworkUnlessTheUserDoes) {
  const TemporaryFolder folder;
  train::Checkpoint checkpoint = train::small_checkpoint();
  checkpoint.graph =
      nn::build_network({.name = "resnet-v1.5", .num_layers = 18, .image = {3, 32, 32}, .classes = 7, .width = 4});
  checkpoint.state = {};
  checkpoint.state.parameters.resize(static_cast<std::size_t>(checkpoint.graph.parameter_count));
  checkpoint.state.statistics.resize(static_cast<std::size_t>(checkpoint.graph.statistic_count));
  train::export_safetensors(checkpoint, folder / "x.safetensors");
  NetworkChoice choice;
  OptionSet set;
  bind_network(set, choice);
  const auto suited = [&](const char* name) {
    nn::NetworkOptions network = choice.options;
    network.name = name;
    suit_network_options(folder / "x.safetensors", set, network);
    return std::pair(network.num_layers, network.width);
  };
  EXPECT_EQ(suited("resnet-v1.5"), std::pair(18, 4));
  EXPECT_EQ(suited("resnet-v1"), std::pair(0, 0));
  set.find("width")->set("8");
  set.find("width")->source = Source::flag;
  EXPECT_EQ(suited("resnet-v1.5"), std::pair(18, 8));
}

TEST(Pretrained, RefusesAnImageShapeOfNoPixels) {
  const TemporaryFolder folder;
  for (const char* shape : {"[3, 0, 40]", "[3, 4294967296, 40]", "[3, -4, 40]", "[3, 40]", "[3, 40, 40.5]", "7"}) {
    const std::string document = fmt::format(R"({{"image_shape": {}, "resize": 50, "crop": "center"}})", shape);
    const Path file = weights_with(folder.path(), document.c_str());
    DataOptions data;
    OptionSet set;
    bind_image(set, data);
    data::expect_error<DataError>([&] { suit_weights(file, "resnet18", set, data); }, "x.safetensors: its image_shape");
    set.find("image-shape")->set("3,80,80");
    set.find("image-shape")->source = Source::flag;
    data::expect_error<DataError>([&] { suit_weights(file, "resnet18", set, data); }, "x.safetensors: its image_shape");
  }
}

TEST(Pretrained, NetworksOfPicturesHaveOneOrThreeChannels) {
  for (const int channels : {1, 2, 3, 4}) {
    nn::GraphBuilder builder("depth", {channels, 4, 4});
    train::Checkpoint checkpoint;
    checkpoint.graph = builder.finish(builder.add("fc", nn::Dense{2}, {builder.add("flat", nn::Flatten{}, {0})}));
    DataOptions data;
    OptionSet set;
    bind_checkpoint_image(set, data);
    RecordingReporter reporter;
    const auto take = [&] { take_pixels(checkpoint, "m/p", set, data, reporter); };
    if (channels == 1 || channels == 3) {
      EXPECT_NO_THROW(take()) << channels;
    } else {
      data::expect_error<DataError>(take, fmt::format("depth takes images of {} channels", channels));
    }
  }
}

TEST(Pretrained, PixelsOfATrainedNetworkHaveItsViews) {
  train::Checkpoint checkpoint = train::small_checkpoint();
  checkpoint.job.preprocessing = Json::object({{"test_views", 6}});
  DataOptions data;
  OptionSet set;
  bind_checkpoint_image(set, data);
  RecordingReporter reporter;
  take_pixels(checkpoint, "m/p", set, data, reporter);
  EXPECT_EQ(test_views(data), 6);
  set.find("test-views")->set("2");
  set.find("test-views")->source = Source::flag;
  take_pixels(checkpoint, "m/p", set, data, reporter);
  EXPECT_EQ(test_views(data), 2);
}

TEST(Pretrained, TheTextOfPixelsHasTheirViews) {
  DataOptions data;
  EXPECT_EQ(pixels_text(data).find("--test-views"), std::string::npos);
  data.test_views = "6";
  EXPECT_TRUE(pixels_text(data).ends_with(" --test-views 6")) << pixels_text(data);
}

}  // namespace
}  // namespace dtrain::config
