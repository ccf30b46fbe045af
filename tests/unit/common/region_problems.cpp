// The layers between the two stages of a detector. Regions have no gradient, so a branch that does not learn proposes
// them: then the differences of the loss are those of what learns.
#include <optional>

#include "layer_cases.hpp"

namespace dtrain::testing {
namespace {

using nn::GraphBuilder;

constexpr nn::Shape kPicture{3, 36, 44};
constexpr nn::Levels kLevels{2, 5, 6};
constexpr int kClasses = 3, kRegions = 16, kFound = 4;

struct MaskHead {
  int side = 0, channels = 0;
};

// A box of ones in a picture of zeros.
void add_mask(const nn::Box& box, std::vector<std::uint8_t>& masks) {
  for (int y = 0; y < kPicture.h; ++y) {
    for (int x = 0; x < kPicture.w; ++x) {
      const auto across = static_cast<float>(x), down = static_cast<float>(y);
      masks.push_back(across >= box.left && across < box.right && down >= box.top && down < box.bottom ? 1 : 0);
    }
  }
}

nn::PictureObjects picture_of(std::vector<nn::Box> boxes, std::vector<std::int32_t> classes, bool group) {
  nn::PictureObjects picture{.boxes = std::move(boxes),
                             .classes = std::move(classes),
                             .crowd = {},
                             .areas = {},
                             .masks = {},
                             .height = kPicture.h,
                             .width = kPicture.w - 4,
                             .scale = 1,
                             .original_height = kPicture.h,
                             .original_width = kPicture.w - 4};
  picture.crowd.assign(picture.boxes.size(), group);
  picture.areas.assign(picture.boxes.size(), 100.0);
  for (const nn::Box& box : picture.boxes) add_mask(box, picture.masks);
  return picture;
}

int add_pyramid(GraphBuilder& b, const std::string& name) {
  const int stem = b.add(name + "_stem", square(6, 5, 4, 2), {b.input()});
  const int large = b.add(name + "_large", square(8, 3, 2, 1), {stem});
  const int small = b.add(name + "_small", square(8, 3, 2, 1), {large});
  return b.add(name, nn::Pyramid{}, {large, small});
}

nn::Convolution biased(int out, int kernel, bool is_dense = false) {
  nn::Convolution convolution = square(out, kernel, 1, kernel / 2);
  convolution.bias = true;
  convolution.is_dense = is_dense;
  return convolution;
}

int add_masks(GraphBuilder& b, const MaskHead& head, int pyramid, int found) {
  const nn::RegionAlign align{.size = head.side,
                              .apart = true,
                              .levels = kLevels,
                              .used = 2,
                              .image_height = kPicture.h,
                              .image_width = kPicture.w};
  const int points = b.add("mask_points", align, {pyramid, found});
  const int mixed = b.add("mask_mixed", biased(head.channels, 3), {points});
  const int kept = b.add("mask_kept", nn::KeepRegions{head.side}, {mixed});
  const int again = b.add("mask_again", biased(head.channels, 3), {kept});
  const int larger = b.add("mask_larger", nn::TransposedConvolution{.out = 5}, {again});
  return b.add("mask_logits", biased(kClasses + 1, 1), {larger});
}

Problem two_stages(const std::string& name, const std::optional<MaskHead>& masks) {
  constexpr int kAnchors = nn::Proposals::kAnchors;
  GraphBuilder b(name, kPicture);
  const int fixed = add_pyramid(b, "fixed");
  const int logits = b.add("fixed_logits", biased(kAnchors, 1), {fixed});
  const int codes = b.add("fixed_codes", biased(4 * kAnchors, 1), {fixed});
  const int proposed = b.add("proposals",
                             nn::Proposals{.regions = kRegions,
                                           .levels = kLevels,
                                           .image_height = kPicture.h,
                                           .image_width = kPicture.w,
                                           .candidates = 30},
                             {logits, codes});
  const int pyramid = add_pyramid(b, "pyramid");
  const nn::RegionAlign align{
      .size = 2, .levels = kLevels, .used = 2, .image_height = kPicture.h, .image_width = kPicture.w};
  const int regions = b.add("regions", align, {pyramid, proposed});
  const int hidden = b.add("hidden", biased(9, 1, true), {regions});
  const int classes = b.add("classes", biased(kClasses + 1, 1, true), {hidden});
  const int boxes = b.add("boxes", biased(4 * (kClasses + 1), 1, true), {hidden});
  const nn::Detections found{.classes = kClasses,
                             .image_height = kPicture.h,
                             .image_width = kPicture.w,
                             .detections = kFound,
                             .mask = masks ? 2 * masks->side : 0};
  const int objects = b.add("found", nn::FoundRegions{found}, {proposed, classes, boxes});
  std::vector<int> inputs{b.add("objectness", biased(kAnchors, 1), {pyramid}),
                          b.add("anchor_codes", biased(4 * kAnchors, 1), {pyramid}),
                          proposed,
                          classes,
                          boxes,
                          objects};
  if (masks) inputs.push_back(add_masks(b, *masks, pyramid, objects));
  nn::Graph graph = b.finish(inputs, nn::RegionLoss{.found = found, .levels = kLevels});
  for (nn::Node& node : graph.nodes) node.learns = !node.name.starts_with("fixed");
  Problem problem = make_problem(std::move(graph), 4);
  problem.objects = {picture_of({{2, 3, 30, 33}, {10, 1, 40, 20}}, {1, 0}, false), picture_of({}, {}, false),
                     picture_of({{5, 5, 25, 30}}, {2}, true), picture_of({{1, 9, 18, 36}}, {2}, false)};
  return problem;
}

}  // namespace

// The last one's masks are as wide as minimal filtering on the CPU asks for.
std::vector<Problem> region_problems() {
  return {two_stages("boxes", std::nullopt), two_stages("masks", MaskHead{3, 6}),
          two_stages("wide_masks", MaskHead{8, 32})};
}

}  // namespace dtrain::testing
