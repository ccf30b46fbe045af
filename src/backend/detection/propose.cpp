#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "doubles.hpp"
#include "match.hpp"
#include "regions.hpp"
#include "truth.hpp"

namespace dtrain::backend {
namespace {

float share_of(float logit) { return static_cast<float>(sigmoid_of(logit)); }

// The best `most` anchors of one level, the best first.
std::vector<Candidate> best_of_level(const AnchorSet& anchors, std::size_t level, const HeadValues<const float>& logits,
                                     int most) {
  std::vector<Candidate> all;
  all.reserve(static_cast<std::size_t>(anchors.level_begins[level + 1] - anchors.level_begins[level]));
  for (std::int64_t i = anchors.level_begins[level]; i < anchors.level_begins[level + 1]; ++i) {
    const std::int64_t pixel = anchors.pixels[static_cast<std::size_t>(i / anchors.at_pixel)];
    const float logit = logits.at(pixel, i % anchors.at_pixel);
    all.push_back(
        {std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit, static_cast<std::int32_t>(level), i});
  }
  keep_best(all, most);
  std::ranges::sort(all, is_better);
  return all;
}

// The best boxes of all levels; of those of one level that overlap much the better.
std::vector<Candidate> best_boxes(const nn::Proposals& layer, const AnchorSet& anchors,
                                  const nn::PictureObjects* objects, const Heads<const float>& heads, int of_level,
                                  int most) {
  const int height = objects ? objects->height : layer.image_height,
            width = objects ? objects->width : layer.image_width;
  std::vector<Candidate> all;
  for (std::size_t level = 0; level + 1 < anchors.level_begins.size(); ++level) {
    std::vector<Candidate> sized;
    for (Candidate& each : best_of_level(anchors, level, heads.classes, of_level)) {
      const nn::Box& anchor = anchors.boxes[static_cast<std::size_t>(each.origin)];
      each.box = clipped(decode_box(anchor, code_of_anchor(anchors, each.origin, heads.boxes)), height, width);
      each.score = share_of(each.score);
      if (is_at_least(each.box, kSmallestRegion)) sized.push_back(each);
    }
    std::ranges::sort(sized, is_better);
    std::ranges::copy(without_doubles(sized, layer.overlap_threshold, most), std::back_inserter(all));
  }
  std::ranges::sort(all, is_better);
  if (std::ssize(all) > most) all.resize(static_cast<std::size_t>(most));
  return all;
}

}  // namespace

std::vector<Region> propose(const nn::Proposals& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                            const Heads<const float>& heads) {
  std::vector<Region> regions;
  for (const Candidate& each : best_boxes(layer, anchors, objects, heads, layer.candidates, layer.regions)) {
    regions.push_back({each.box, each.score, 0});
  }
  regions.resize(static_cast<std::size_t>(layer.regions));
  return regions;
}

std::vector<Region> propose_for_training(const nn::Proposals& layer, const AnchorSet& anchors,
                                         const nn::PictureObjects* objects, const Heads<const float>& heads,
                                         const RegionDraw& draw) {
  constexpr MatchRule kRule{.background_below = 0.5f, .object_from = 0.5f, .best_always = false};
  const Truth truth = truth_of(objects);
  const int most = 2 * layer.candidates;
  std::vector<nn::Box> boxes;
  for (const Candidate& each : best_boxes(layer, anchors, objects, heads, most, most)) boxes.push_back(each.box);
  boxes.insert(boxes.end(), truth.boxes.begin(), truth.boxes.end());
  const std::vector<std::int32_t> matches = match_anchors(boxes, truth.boxes, kRule);
  const auto room = static_cast<std::size_t>(layer.regions);
  const Drawn drawn = draw_balanced(matches, room / 4, room, draw);
  std::vector<Region> regions;
  for (const std::size_t i : drawn.objects) {
    const auto object = static_cast<std::size_t>(matches[i]);
    regions.push_back({boxes[i], static_cast<float>(truth.indices[object]), static_cast<float>(truth.classes[object])});
  }
  for (const std::size_t i : drawn.background) regions.push_back({boxes[i], kBackground, 0});
  regions.resize(room);
  return regions;
}

}  // namespace dtrain::backend
