#include <algorithm>
#include <vector>

#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "boxes.hpp"
#include "heads.hpp"
#include "match.hpp"
#include "truth.hpp"

namespace dtrain::backend {
HeadLoss head_loss(const nn::DetectionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                   const Heads<const float>& heads, const Heads<float>& gradients) {
  constexpr int kAnchors = nn::DetectionLoss::kAnchors;
  const Truth truth = truth_of(objects);
  const std::vector<std::int32_t> matches = match_anchors(anchors.boxes, truth.boxes, {});
  const auto found = std::ranges::count_if(matches, [](std::int32_t match) { return match >= 0; });
  const double share = 1.0 / static_cast<double>(std::max<std::int64_t>(found, 1));
  const bool learns = gradients.classes.values != nullptr;
  HeadLoss sum;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const std::int32_t match = matches[i];
    if (match == kNeither) continue;
    const std::int64_t pixel = anchors.pixels[i / kAnchors], anchor = static_cast<std::int64_t>(i % kAnchors);
    const std::int32_t wanted = match >= 0 ? truth.classes[static_cast<std::size_t>(match)] : -1;
    for (std::int32_t k = 0; k < layer.found.classes; ++k) {
      const std::int64_t channel = anchor * layer.found.classes + k;
      const LossTerm term = focal_term(heads.classes.at(pixel, channel), k == wanted);
      sum.classification += term.loss;
      if (learns) gradients.classes.at(pixel, channel) += static_cast<float>(term.slope * share);
    }
    if (match < 0) continue;
    const BoxCode code = encode_box(anchors.boxes[i], truth.boxes[static_cast<std::size_t>(match)]);
    for (std::int64_t side = 0; side < 4; ++side) {
      const double distance = static_cast<double>(heads.boxes.at(pixel, anchor * 4 + side)) -
                              static_cast<double>(code[static_cast<std::size_t>(side)]);
      sum.boxes += distance < 0 ? -distance : distance;
      const double slope = distance > 0 ? share : distance < 0 ? -share : 0;
      if (learns) gradients.boxes.at(pixel, anchor * 4 + side) += static_cast<float>(slope);
    }
  }
  return {sum.classification * share, sum.boxes * share};
}

}  // namespace dtrain::backend
