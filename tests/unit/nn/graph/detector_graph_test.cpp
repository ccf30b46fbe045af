// What the layers of a detector ask of the graph around them.
#include <gtest/gtest.h>

#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {
namespace {

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

// Two levels of images of 64x64, and a first stage on them.
struct TwoLevelDetector {
  static constexpr Levels kLevels{2, 8, 8};
  static constexpr RegionAlign kAlign{.size = 2, .levels = kLevels, .used = 2, .image_height = 64, .image_width = 64};

  int add(const std::string& name, int out, int from, int stride = 1) {
    return builder.add(name, Convolution{.out = out, .stride_h = stride, .stride_w = stride}, {from});
  }
  FoundRegions finder(int of_classes) const {
    return {{.classes = of_classes, .image_height = 64, .image_width = 64, .detections = 4}};
  }

  GraphBuilder builder{"detector", {3, 64, 64}};
  int large = add("large", 4, 0, 8), small = add("small", 4, large, 2);
  int pyramid = builder.add("pyramid", Pyramid{}, {large, small});
  int logits = add("logits", Proposals::kAnchors, pyramid), codes = add("codes", 4 * Proposals::kAnchors, pyramid);
  int proposed = builder.add(
      "proposed", Proposals{.regions = 16, .levels = kLevels, .image_height = 64, .image_width = 64}, {logits, codes});
  int aligned = builder.add("aligned", kAlign, {pyramid, proposed});
  int classes = add("classes", 4, aligned), boxes = add("boxes", 16, aligned);
};

TEST(DetectorGraphs, GiveRegionsToNoOrdinaryLayer) {
  for (const Layer& layer : std::vector<Layer>{Flatten{}, Activation{}, Dropout{}, Scale{}, Convolution{.out = 6},
                                               Dense{.out = 4}, Position{}}) {
    TwoLevelDetector of;
    EXPECT_EQ(refusal_of([&] { of.builder.add("last", layer, {of.proposed}); }),
              std::string("last: ") + layer_kind(layer) + " cannot take the regions of proposed");
  }
  for (const Layer& layer : std::vector<Layer>{Concat{}, Add{}}) {
    TwoLevelDetector of;
    const int found = of.builder.add("found", of.finder(3), {of.proposed, of.classes, of.boxes});
    EXPECT_EQ(refusal_of([&] {
                of.builder.add("last", layer, {found, found});
              }),
              std::string("last: ") + layer_kind(layer) + " cannot take the regions of found");
  }
}

TEST(DetectorGraphs, TakeRegionsFromNoOrdinaryLayer) {
  TwoLevelDetector of;
  const int six = of.builder.add("six", Dense{.out = kRegion}, {of.large});
  EXPECT_EQ(refusal_of([&] {
              of.builder.add("last", TwoLevelDetector::kAlign, {of.pyramid, six});
            }),
            "last: takes regions, and six (dense) gives none");
}

TEST(DetectorGraphs, FindTheClassesOfTheirLoss) {
  const auto finish = [](int classes_of_found) {
    TwoLevelDetector of;
    const int classes = of.add("other_classes", classes_of_found + 1, of.aligned),
              boxes = of.add("other_boxes", 4 * (classes_of_found + 1), of.aligned),
              found = of.builder.add("found", of.finder(classes_of_found), {of.proposed, classes, boxes});
    of.builder.finish({of.logits, of.codes, of.proposed, of.classes, of.boxes, found},
                      RegionLoss{.found = of.finder(3).found, .levels = TwoLevelDetector::kLevels});
  };
  EXPECT_EQ(refusal_of([&] { finish(3); }), "no error");
  EXPECT_EQ(refusal_of([&] { finish(5); }), "found: has 5 classes, and detections has 3");
}

TEST(DetectorGraphs, AreMadeForTheImagesOfTheirInput) {
  for (const char* const name : {"mask-rcnn", "retinanet"}) {
    const Json document =
        graph_to_json(build_network({.name = name, .image = {3, 64, 64}, .classes = 3, .backbone = "resnet-18"}));
    int states_image = 0;
    const Json::Array& all = document.at("nodes").as_array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].find("image")) continue;
      ++states_image;
      Json::Array nodes = all;
      nodes[i]["image"] = Json::array({96, 96});
      Json other = document;
      other["nodes"] = std::move(nodes);
      EXPECT_EQ(refusal_of([&] { graph_from_json(other, "net.json"); }),
                "net.json: " + all[i].at("name").as_string() +
                    ": is made for images of 96x96, and the network takes images of 64x64");
    }
    EXPECT_EQ(states_image, std::string(name) == "retinanet" ? 1 : 5);
  }
}

}  // namespace
}  // namespace dtrain::nn
