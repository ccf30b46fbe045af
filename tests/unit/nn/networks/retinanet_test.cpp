#include <gtest/gtest.h>

#include <algorithm>

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
      build_network({.name = "retinanet", .image = {3, 200, 312}, .classes = 2, .backbone = "resnet-18"});
  const auto& loss = std::get<DetectionLoss>(graph.nodes.back().layer);
  EXPECT_EQ(loss.levels, (Levels{5, 25, 39}));
  const std::vector<LevelPlace> places = level_places(loss.levels);
  EXPECT_EQ(places.back().height, 2);
  EXPECT_EQ(places.back().width, 3);
  EXPECT_EQ(graph.classes(), 2);
  EXPECT_EQ(result_size(graph), 600);
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
