#include <algorithm>
#include <vector>

#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "boxes.hpp"
#include "heads.hpp"
#include "match.hpp"
#include "truth.hpp"

namespace dtrain::backend {
namespace {

// Focal loss with gamma 2 and alpha 0.25, and its slope.
LossTerm focal(double logit, bool target) {
  constexpr double kAlpha = 0.25;
  const double small = bounded_exp(logit < 0 ? logit : -logit);  // exp(-|logit|)
  const double share = (logit < 0 ? small : 1) / (1 + small), rest = (logit < 0 ? 1 : small) / (1 + small);
  const double entropy = (logit > 0 ? logit : 0) - (target ? logit : 0) + portable_log(1 + small);
  const double miss = target ? rest : share, weight = target ? kAlpha : 1 - kAlpha;
  const double slope = target ? -rest : share, growth = (target ? -1 : 1) * share * rest;
  return {weight * miss * miss * entropy, weight * miss * (miss * slope + 2 * growth * entropy)};
}

}  // namespace

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
      const LossTerm term = focal(heads.classes.at(pixel, channel), k == wanted);
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
