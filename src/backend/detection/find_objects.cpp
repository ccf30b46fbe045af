#include <algorithm>
#include <vector>

#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "boxes.hpp"
#include "doubles.hpp"
#include "heads.hpp"

namespace dtrain::backend {
namespace {

// The best of one level, without their boxes. A low threshold lets each class of each anchor pass, millions of them:
// the room is for a few times as many as are kept.
std::vector<Candidate> candidates_of(const nn::DetectionLoss& layer, const AnchorSet& anchors, std::size_t level,
                                     const HeadValues<const float>& classes) {
  constexpr std::int64_t kTimes = 4;
  const std::int64_t room = kTimes * layer.candidates, at_pixel = anchors.at_pixel;
  std::vector<Candidate> all;
  for (std::int64_t i = anchors.level_begins[level]; i < anchors.level_begins[level + 1]; ++i) {
    const std::int64_t pixel = anchors.pixels[static_cast<std::size_t>(i / at_pixel)];
    for (std::int32_t k = 0; k < layer.found.classes; ++k) {
      const double logit = classes.at(pixel, i % at_pixel * layer.found.classes + k);
      const auto score = static_cast<float>(sigmoid_of(logit));
      if (!(score > layer.found.score_threshold)) continue;
      all.push_back({score, k, i});
      if (std::ssize(all) == room) keep_best(all, layer.candidates);
    }
  }
  keep_best(all, layer.candidates);
  std::ranges::sort(all, is_better);
  return all;
}

}  // namespace

void find_objects(const nn::DetectionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                  const Heads<const float>& heads, std::span<float> result) {
  const int height = objects ? objects->height : layer.found.image_height,
            width = objects ? objects->width : layer.found.image_width;
  std::vector<Candidate> all;
  for (std::size_t level = 0; level + 1 < anchors.level_begins.size(); ++level) {
    for (Candidate& each : candidates_of(layer, anchors, level, heads.classes)) {
      const nn::Box& anchor = anchors.boxes[static_cast<std::size_t>(each.origin)];
      each.box = clipped(decode_box(anchor, code_of_anchor(anchors, each.origin, heads.boxes)), height, width);
      all.push_back(each);
    }
  }
  std::ranges::sort(all, is_better);
  std::ranges::fill(result, 0.0f);
  float* to = result.data();
  for (const Candidate& each : without_doubles(all, layer.found.overlap_threshold, layer.found.detections)) {
    for (const float value :
         {each.box.left, each.box.top, each.box.right, each.box.bottom, each.score, static_cast<float>(each.label)}) {
      *to++ = value;
    }
  }
}

}  // namespace dtrain::backend
