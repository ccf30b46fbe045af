#include "region_loss.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "boxes.hpp"
#include "match.hpp"
#include "region_align.hpp"
#include "truth.hpp"

namespace dtrain::backend {
namespace {

// One picture's loss and, where they are wanted, its gradients.
class PictureLoss {
 public:
  PictureLoss(const nn::RegionLoss& layer, const nn::PictureObjects* objects, const RegionHeads<const float>& heads,
              const RegionHeads<float>& gradients)
      : layer_(layer),
        objects_(objects),
        truth_(truth_of(objects)),
        heads_(heads),
        gradients_(gradients),
        learns_(gradients.anchors.classes.values != nullptr) {}

  void of_anchors(const AnchorSet& anchors, const RegionDraw& draw, RegionLosses& sum) const {
    constexpr std::size_t kDrawn = 256;
    constexpr MatchRule kRule{.background_below = 0.3f, .object_from = 0.7f};
    const std::vector<std::int32_t> matches = match_anchors(anchors.boxes, truth_.boxes, kRule);
    const Drawn drawn = draw_balanced(matches, kDrawn / 2, kDrawn, draw);
    const double share = share_of(drawn.objects.size() + drawn.background.size());
    const auto judge = [&](std::size_t i, bool is_object) {
      const std::int64_t pixel = anchors.pixels[i / static_cast<std::size_t>(anchors.at_pixel)];
      const std::int64_t anchor = static_cast<std::int64_t>(i) % anchors.at_pixel;
      const LossTerm term = sigmoid_term(0, is_object, heads_.anchors.classes.at(pixel, anchor));
      sum.objectness += term.loss * share;
      add(gradients_.anchors.classes, pixel, anchor, term.slope * share);
      if (!is_object) return;
      const nn::Box& box = truth_.boxes[static_cast<std::size_t>(matches[i])];
      sum.anchor_boxes += distance(heads_.anchors.boxes, gradients_.anchors.boxes, pixel, anchor * 4,
                                   encode_box(anchors.boxes[i], box), share);
    };
    for (const std::size_t i : drawn.objects) judge(i, true);
    for (const std::size_t i : drawn.background) judge(i, false);
  }

  void of_regions(std::span<const Region> regions, RegionLosses& sum) const {
    const auto count = static_cast<std::size_t>(std::ranges::count_if(regions, &Region::is_there));
    const double share = share_of(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Region& region = regions[i];
      const auto row = static_cast<std::int64_t>(i);
      const auto label = region.is_object() ? static_cast<std::int64_t>(region.label) + 1 : 0;
      sum.classes += entropy(row, label, share);
      if (label == 0) continue;
      const nn::Box& box = objects_->boxes[static_cast<std::size_t>(region.value)];
      sum.boxes += distance(heads_.regions.boxes, gradients_.regions.boxes, row, label * 4,
                            encode_region(region.box, box), share);
    }
  }

  void of_masks(std::span<const Region> found, int mask_rows, RegionLosses& sum) const {
    const int side = layer_.found.mask;
    const auto count = static_cast<std::size_t>(std::ranges::count_if(found, &Region::is_object));
    const double share = share_of(count * static_cast<std::size_t>(side * side));
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<float> wanted = mask_of(found[i]);
      const auto channel = static_cast<std::int64_t>(found[i].label) + 1;
      const std::int64_t first = static_cast<std::int64_t>(i) * mask_rows * side;
      for (std::int64_t point = 0; point < std::ssize(wanted); ++point) {
        const double target = wanted[static_cast<std::size_t>(point)];
        const LossTerm term = sigmoid_term(0, target, heads_.masks.at(first + point, channel));
        sum.masks += term.loss * share;
        add(gradients_.masks, first + point, channel, term.slope * share);
      }
    }
  }

 private:
  static double share_of(std::size_t count) { return 1.0 / static_cast<double>(std::max<std::size_t>(count, 1)); }

  void add(const HeadValues<float>& to, std::int64_t pixel, std::int64_t channel, double slope) const {
    if (learns_) to.at(pixel, channel) += static_cast<float>(slope);
  }

  double distance(const HeadValues<const float>& codes, const HeadValues<float>& gradients, std::int64_t pixel,
                  std::int64_t channel, const BoxCode& wanted, double share) const {
    double sum = 0;
    for (std::int64_t side = 0; side < 4; ++side) {
      const double away = static_cast<double>(codes.at(pixel, channel + side)) -
                          static_cast<double>(wanted[static_cast<std::size_t>(side)]);
      const LossTerm term = smooth_distance(away);
      sum += term.loss * share;
      add(gradients, pixel, channel + side, term.slope * share);
    }
    return sum;
  }

  // Of a region's classes, the background among them.
  double entropy(std::int64_t region, std::int64_t label, double share) const {
    const int classes = layer_.found.classes + 1;
    const auto logit = [&](std::int64_t k) { return static_cast<double>(heads_.regions.classes.at(region, k)); };
    double most = logit(0), sum = 0;
    for (std::int64_t k = 1; k < classes; ++k) most = std::max(most, logit(k));
    for (std::int64_t k = 0; k < classes; ++k) sum += bounded_exp(logit(k) - most);
    for (std::int64_t k = 0; k < classes; ++k) {
      const double likely = bounded_exp(logit(k) - most) / sum;
      add(gradients_.regions.classes, region, k, (likely - (k == label ? 1 : 0)) * share);
    }
    return share * (portable_log(sum) - (logit(label) - most));
  }

  std::vector<float> mask_of(const Region& region) const {
    DTRAIN_CHECK(!objects_->masks.empty(), "a detector of masks learns from true masks");
    const std::size_t size = objects_->masks.size() / objects_->boxes.size();
    const auto mask = std::span(objects_->masks).subspan(static_cast<std::size_t>(region.value) * size, size);
    return mask_in_region(mask, layer_.found.image_height, layer_.found.image_width, region.box, layer_.found.mask);
  }

  const nn::RegionLoss& layer_;
  const nn::PictureObjects* const objects_;
  const Truth truth_;
  const RegionHeads<const float>& heads_;
  const RegionHeads<float>& gradients_;
  const bool learns_;
};

}  // namespace

RegionLosses& RegionLosses::operator+=(const RegionLosses& other) {
  objectness += other.objectness;
  anchor_boxes += other.anchor_boxes;
  classes += other.classes;
  boxes += other.boxes;
  masks += other.masks;
  return *this;
}

RegionLosses region_loss(const nn::RegionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                         const RegionHeads<const float>& heads, const LossRegions& regions, const RegionDraw& draw,
                         const RegionHeads<float>& gradients) {
  const PictureLoss picture(layer, objects, heads, gradients);
  RegionLosses sum;
  picture.of_anchors(anchors, draw, sum);
  picture.of_regions(regions.all, sum);
  if (layer.found.mask > 0) picture.of_masks(regions.found, regions.mask_rows, sum);
  return sum;
}

}  // namespace dtrain::backend
