#include <algorithm>
#include <vector>

#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "boxes.hpp"
#include "heads.hpp"

namespace dtrain::backend {
namespace {

struct Candidate {
  float score = 0;
  std::int32_t label = 0;
  std::int64_t anchor = 0;
  nn::Box box = {};
};

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.anchor != b.anchor ? a.anchor < b.anchor : a.label < b.label;
}

// The best of one level, without their boxes.
std::vector<Candidate> candidates_of(const nn::DetectionLoss& layer, const AnchorSet& anchors, std::size_t level,
                                     const HeadValues<const float>& classes) {
  constexpr int kAnchors = nn::DetectionLoss::kAnchors;
  std::vector<Candidate> all;
  for (std::int64_t i = anchors.level_begins[level]; i < anchors.level_begins[level + 1]; ++i) {
    const std::int64_t pixel = anchors.pixels[static_cast<std::size_t>(i / kAnchors)];
    for (std::int32_t k = 0; k < layer.classes; ++k) {
      const double logit = classes.at(pixel, i % kAnchors * layer.classes + k);
      const auto score = static_cast<float>(1 / (1 + bounded_exp(-logit)));
      if (score > layer.score_threshold) all.push_back({score, k, i});
    }
  }
  std::ranges::sort(all, is_better);
  if (std::ssize(all) > layer.candidates) all.resize(static_cast<std::size_t>(layer.candidates));
  return all;
}

BoxCode code_of(const AnchorSet& anchors, std::int64_t anchor, const HeadValues<const float>& boxes) {
  constexpr int kAnchors = nn::DetectionLoss::kAnchors;
  const std::int64_t pixel = anchors.pixels[static_cast<std::size_t>(anchor / kAnchors)];
  BoxCode code;
  for (std::size_t side = 0; side < code.size(); ++side) {
    code[side] = boxes.at(pixel, anchor % kAnchors * 4 + static_cast<std::int64_t>(side));
  }
  return code;
}

// Non-maximum suppression within each class; `all` from the best to the worst. At most `most` stay.
std::vector<Candidate> without_doubles(const std::vector<Candidate>& all, float threshold, int most) {
  std::vector<Candidate> kept;
  for (const Candidate& each : all) {
    if (std::ssize(kept) == most) break;
    const bool doubled = std::ranges::any_of(kept, [&](const Candidate& better) {
      return better.label == each.label && overlap_of(better.box, each.box) > threshold;
    });
    if (!doubled) kept.push_back(each);
  }
  return kept;
}

}  // namespace

void find_objects(const nn::DetectionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                  const Heads<const float>& heads, std::span<float> result) {
  const int height = objects ? objects->height : layer.image_height,
            width = objects ? objects->width : layer.image_width;
  std::vector<Candidate> all;
  for (std::size_t level = 0; level + 1 < anchors.level_begins.size(); ++level) {
    for (Candidate& each : candidates_of(layer, anchors, level, heads.classes)) {
      const nn::Box& anchor = anchors.boxes[static_cast<std::size_t>(each.anchor)];
      each.box = clipped(decode_box(anchor, code_of(anchors, each.anchor, heads.boxes)), height, width);
      all.push_back(each);
    }
  }
  std::ranges::sort(all, is_better);
  std::ranges::fill(result, 0.0f);
  float* to = result.data();
  for (const Candidate& each : without_doubles(all, layer.overlap_threshold, layer.detections)) {
    for (const float value :
         {each.box.left, each.box.top, each.box.right, each.box.bottom, each.score, static_cast<float>(each.label)}) {
      *to++ = value;
    }
  }
}

}  // namespace dtrain::backend
