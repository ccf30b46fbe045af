#include "match.hpp"

#include "boxes.hpp"

namespace dtrain::backend {

std::vector<std::int32_t> match_anchors(std::span<const nn::Box> anchors, std::span<const nn::Box> objects,
                                        const MatchRule& rule) {
  std::vector<std::int32_t> matches(anchors.size(), kBackground);
  if (objects.empty()) return matches;
  std::vector<float> best_of_object(objects.size(), 0.0f);
  std::vector<std::int32_t> nearest(anchors.size());
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    float best = -1;
    for (std::size_t k = 0; k < objects.size(); ++k) {
      const float overlap = overlap_of(objects[k], anchors[i]);
      if (overlap > best) best = overlap, nearest[i] = static_cast<std::int32_t>(k);
      if (overlap > best_of_object[k]) best_of_object[k] = overlap;
    }
    matches[i] = best < rule.background_below ? kBackground : best < rule.object_from ? kNeither : nearest[i];
  }
  if (!rule.best_always) return matches;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    for (std::size_t k = 0; k < objects.size(); ++k) {
      // An object that overlaps no anchor has no best one: all of them are equally far.
      const float best = best_of_object[k];
      if (best > 0 && overlap_of(objects[k], anchors[i]) == best) matches[i] = nearest[i];
    }
  }
  return matches;
}

}  // namespace dtrain::backend
