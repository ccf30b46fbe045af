#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {
namespace {

// What torchvision states for retinanet_resnet50_fpn, whose batch norms are frozen and count as none, and their gains
// and shifts.
TEST(Retinanet, has_as_many_parameters_as_torchvisions) {
  constexpr std::int64_t kStated = 34'014'999, kNorms = 53'120;
  const Graph graph = build_network({.name = "retinanet", .image = {3, 64, 64}, .classes = 91});
  EXPECT_EQ(graph.parameter_count, kStated + kNorms);
}

TEST(Retinanet, has_its_levels_at_strides_of_8_to_128) {
  const Graph graph =
      build_network({.name = "retinanet", .image = {3, 224, 320}, .classes = 2, .backbone = "resnet-18"});
  const auto& loss = std::get<DetectionLoss>(graph.nodes.back().layer);
  EXPECT_EQ(loss.levels, (Levels{5, 28, 40}));
  const std::vector<LevelPlace> places = level_places(loss.levels);
  EXPECT_EQ(places.back().height, 2);
  EXPECT_EQ(places.back().width, 3);
  EXPECT_EQ(graph.classes(), 2);
  EXPECT_EQ(result_size(graph), 600);
}

// As torchvision's batches, whose sides are padded to multiples of 32: an anchor lies on each pixel of a level.
TEST(Retinanet, has_images_whose_sides_its_stride_divides) {
  for (const auto& [h, w, hint] : {std::tuple{800, 1333, "give 3,800,1344 or 3,800,1312"},
                                   {600, 600, "give 3,608,608 or 3,576,576"},
                                   {1333, 800, "give 3,1344,800 or 3,1312,800"}}) {
    try {
      build_network({.name = "retinanet", .image = {3, h, w}, .classes = 2, .backbone = "resnet-18"});
      ADD_FAILURE() << h << " x " << w << " is taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("not both multiples of 32"), std::string::npos) << error.what();
      EXPECT_TRUE(error.hint().starts_with(hint)) << error.hint();
    }
  }
}

// Checkpoints of older releases have any size. Their tensors are those of every other.
TEST(Retinanet, is_known_by_its_tensors_for_every_image) {
  Graph graph = build_network({.name = "retinanet", .image = {3, 512, 512}, .classes = 2, .backbone = "resnet-18"});
  graph.nodes.front().output = {3, 500, 400};
  const std::optional<NetworkOptions> options = options_of_network(graph);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->image, (Shape{3, 512, 416}));
}

TEST(Retinanet, names_what_it_cannot_be) {
  const auto mistake = [](const NetworkOptions& options) -> std::string {
    try {
      build_network(options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(
      mistake({.name = "retinanet", .image = {3, 64, 63}}),
      "setting 'image-shape': images of 64 x 63 pixels are too small for retinanet, whose smallest objects have 32");
  EXPECT_EQ(mistake({.name = "retinanet", .image = {3, 64, 64}, .backbone = "vgg"}),
            "setting 'backbone': vgg is no backbone of a detector");
  EXPECT_NE(mistake({.name = "resnet", .backbone = "resnet-18"}).find("backbone"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::nn
