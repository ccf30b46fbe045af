// Faster R-CNN and Mask R-CNN as graphs.
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {
namespace {

NetworkOptions mask_rcnn(const std::string& backbone) {
  return {.name = "mask-rcnn", .image = {3, 256, 256}, .classes = 90, .backbone = backbone};
}

const TensorView& tensor(const Graph& graph, const std::string& name) {
  for (const TensorView& view : graph.parameters) {
    if (view.name == name) return view;
  }
  throw UsageError("no tensor " + name);
}

// maskrcnn_resnet50_fpn of torchvision has 44,401,393 parameters for 91 classes (the background is one) with frozen
// batch norms, whose 2 x 26,560 numbers are none there.
TEST(Regions, mask_rcnn_has_the_parameters_of_torchvision) {
  const Graph graph = build_network(mask_rcnn("resnet-50"));
  EXPECT_EQ(graph.parameter_count, 44'401'393 + 2 * 26'560);
  EXPECT_EQ(tensor(graph, "roi_heads.box_head.fc6_weight").shape, (std::vector<std::int64_t>{1024, 12544}));
  EXPECT_EQ(tensor(graph, "roi_heads.mask_predictor.conv5_mask_weight").shape,
            (std::vector<std::int64_t>{256, 256, 2, 2}));
  EXPECT_EQ(tensor(graph, "roi_heads.mask_predictor.mask_fcn_logits_weight").shape,
            (std::vector<std::int64_t>{91, 256, 1, 1}));
}

TEST(Regions, a_result_has_a_mask_for_each_object) {
  const Graph graph = build_network(mask_rcnn("resnet-18"));
  EXPECT_EQ(result_size(graph), 100 * (6 + 28 * 28));
  EXPECT_EQ(loss_parts(graph).size(), 5u);
  EXPECT_STREQ(loss_parts(graph)[4], "mask");
}

TEST(Regions, few_proposals_find_few_objects) {
  NetworkOptions options = mask_rcnn("resnet-18");
  options.proposals = 64;
  EXPECT_EQ(detection_of(build_network(options))->detections, 16);
  options.name = "faster-rcnn";
  const Graph graph = build_network(options);
  EXPECT_EQ(result_size(graph), 16 * 6);
  EXPECT_EQ(loss_parts(graph).size(), 4u);
  EXPECT_EQ(options_of_network(graph)->proposals, 64);
}

TEST(Regions, smaller_anchors_reach_both_stages_and_the_document) {
  for (const std::string& name : detector_names()) {
    NetworkOptions options = mask_rcnn("resnet-18");
    options.name = name;
    EXPECT_EQ(anchor_size(build_network(options)), 32);
    EXPECT_EQ(options_of_network(build_network(options))->anchor_size, 0);
    EXPECT_EQ(graph_to_json(build_network(options)).dump().find("anchor_size"), std::string::npos);
    options.anchor_size = 16;
    const Graph graph = build_network(options);
    EXPECT_EQ(anchor_size(graph), 16);
    EXPECT_EQ(options_of_network(graph)->anchor_size, 16);
    const Graph again = graph_from_json(graph_to_json(graph), "graph.json", {}, {});
    EXPECT_EQ(anchor_size(again), 16);
    for (const Node& node : again.nodes) {
      const auto* const proposals = std::get_if<Proposals>(&node.layer);
      EXPECT_TRUE(!proposals || proposals->anchor_size == 16);
    }
  }
}

TEST(Regions, refuses_anchors_that_are_out_of_range) {
  NetworkOptions options = mask_rcnn("resnet-18");
  for (const int size : {-16, 3, 513}) {
    options.anchor_size = size;
    EXPECT_THROW(build_network(options), UsageError) << size;
  }
  options.anchor_size = 16;
  const std::string text = graph_to_json(build_network(options)).dump(), size = "\"anchor_size\":";
  for (std::size_t at = text.find(size); at != std::string::npos; at = text.find(size, at + 1)) {
    const Json document = Json::parse(std::string(text).insert(at + size.size(), "-"), "graph.json");
    EXPECT_THROW(graph_from_json(document, "graph.json", {}, {}), UsageError) << at;
  }
  const std::string other = std::string(text).replace(text.find(size) + size.size(), 2, "32");
  EXPECT_THROW(graph_from_json(Json::parse(other, "graph.json"), "graph.json", {}, {}), DataError) << "two sizes";
  EXPECT_THROW(build_network({.name = "resnet50", .image = {3, 64, 64}, .anchor_size = 16}), UsageError);
}

TEST(Regions, names_what_it_cannot_be) {
  NetworkOptions options = mask_rcnn("resnet-18");
  options.proposals = 8;
  EXPECT_THROW(build_network(options), UsageError);
  options.proposals = 0;
  for (const Shape& image : {Shape{3, 32, 64}, {3, 500, 512}, {3, 512, 500}}) {
    options.image = image;
    EXPECT_THROW(build_network(options), UsageError) << image.h << " x " << image.w;
  }
  EXPECT_THROW(build_network({.name = "retinanet", .image = {3, 64, 64}, .classes = 2, .proposals = 64}), UsageError);
}

TEST(Regions, a_lower_threshold_reaches_both_stages) {
  Graph graph = build_network(mask_rcnn("resnet-18"));
  set_score_threshold(graph, 0.01f);
  for (const Node& node : graph.nodes) {
    const auto* const found = std::get_if<FoundRegions>(&node.layer);
    EXPECT_TRUE(!found || found->found.score_threshold == 0.01f);
  }
  EXPECT_EQ(detection_of(graph)->score_threshold, 0.01f);
}

}  // namespace
}  // namespace dtrain::nn
