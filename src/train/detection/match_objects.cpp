// Follows COCOeval.evaluateImg of pycocotools, so that ties end as they end there.
#include "match_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

struct AreaRange {
  double low, high;
  bool holds(double area) const { return area >= low && area <= high; }
};
constexpr std::array<AreaRange, kAreas> kAreaRanges{
    {{0, 1e5 * 1e5}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e5 * 1e5}}};

// numpy's linspace(0.5, 0.95, 10), bit for bit.
std::array<double, kOverlaps> overlap_limits() {
  constexpr double kFrom = 0.5, kTo = 0.95, kMost = 1 - 1e-10;
  const double step = (kTo - kFrom) / static_cast<double>(kOverlaps - 1);
  std::array<double, kOverlaps> limits{};
  for (std::size_t t = 0; t < kOverlaps; ++t) limits[t] = std::min(static_cast<double>(t) * step + kFrom, kMost);
  limits.back() = kTo;
  return limits;
}

using Truths = std::vector<const TrueObject*>;
using Founds = std::vector<const FoundObject*>;

class CategoryMatcher {
 public:
  CategoryMatcher(OverlapOf what, const Truths& truth, const Founds& found) : truth_(truth), found_(found) {
    overlaps_.reserve(truth.size() * found.size());
    std::vector<data::PixelBox> boxes;
    for (const TrueObject* object : truth) boxes.push_back(shape_of(what, *object));
    for (const FoundObject* object : found) {
      const data::PixelBox box = shape_of(what, *object);
      for (std::size_t g = 0; g < truth.size(); ++g) {
        double overlap = data::box_overlap(box, boxes[g], truth[g]->crowd);
        if (overlap > 0 && what == OverlapOf::masks)
          overlap = data::mask_overlap(*object->mask, *truth[g]->mask, truth[g]->crowd);
        overlaps_.push_back(overlap);
      }
    }
  }

  void match(std::size_t area, std::vector<MatchedObject>& matches, std::uint64_t& counted) {
    static const std::array<double, kOverlaps> kLimits = overlap_limits();
    const AreaRange& range = kAreaRanges[area];
    order_truth(range);
    counted = first_ignored_;
    for (std::size_t t = 0; t < kOverlaps; ++t) {
      taken_.assign(truth_.size(), false);
      for (std::size_t d = 0; d < found_.size(); ++d) {
        const std::size_t best = best_of(d, kLimits[t]);
        const bool is_matched = best != truth_.size();
        if (is_matched) {
          taken_[best] = true;
          matches[d].matched |= match_bit(area, t);
        }
        if (is_matched ? best >= first_ignored_ : !range.holds(found_[d]->area))
          matches[d].ignored |= match_bit(area, t);
      }
    }
  }

 private:
  template <typename Object>
  static data::PixelBox shape_of(OverlapOf what, const Object& object) {
    return what == OverlapOf::boxes ? object.box : data::mask_box(*object.mask);
  }

  // Those that count first, crowds and other areas behind them.
  void order_truth(const AreaRange& range) {
    order_.resize(truth_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto counts = [&](std::size_t g) { return !truth_[g]->crowd && range.holds(truth_[g]->area); };
    first_ignored_ = static_cast<std::size_t>(std::ranges::stable_partition(order_, counts).begin() - order_.begin());
  }

  // The position in `order_` of the object that overlaps most, at least by `limit`; the last of equal ones. Only where
  // none counts may one be taken that is ignored.
  std::size_t best_of(std::size_t d, double limit) const {
    const std::size_t count = truth_.size();
    std::size_t best = count;
    for (std::size_t at = 0; at < count; ++at) {
      const std::size_t g = order_[at];
      if (taken_[at] && !truth_[g]->crowd) continue;
      if (best < first_ignored_ && at >= first_ignored_) break;
      const double overlap = overlaps_[d * count + g];
      if (overlap < limit) continue;
      limit = overlap;
      best = at;
    }
    return best;
  }

  const Truths& truth_;
  const Founds& found_;
  std::vector<double> overlaps_;  // [found, truth]
  std::vector<std::size_t> order_;
  std::size_t first_ignored_ = 0;  // in `order_`
  std::vector<bool> taken_;        // by place in `order_`
};

CategoryMatches match_category(OverlapOf what, std::uint64_t picture, std::int32_t category, const Truths& truth,
                               Founds found) {
  std::ranges::stable_sort(found, std::greater{}, &FoundObject::score);
  found.resize(std::min(found.size(), kMostFound));
  CategoryMatches matches{category, std::vector<MatchedObject>(found.size()), {}};
  for (std::size_t d = 0; d < found.size(); ++d) {
    matches.found[d].score = found[d]->score;
    matches.found[d].picture = picture;
    matches.found[d].rank = static_cast<std::uint32_t>(d);
  }
  CategoryMatcher matcher(what, truth, found);
  for (std::size_t area = 0; area < kAreas; ++area) matcher.match(area, matches.found, matches.truths[area]);
  return matches;
}

}  // namespace

PictureMatches match_picture(OverlapOf what, std::uint64_t picture, std::span<const TrueObject> truth,
                             std::span<const FoundObject> found) {
  std::map<std::int32_t, std::pair<Truths, Founds>> categories;
  for (const TrueObject& object : truth) categories[object.category].first.push_back(&object);
  for (const FoundObject& object : found) {
    if (!std::isfinite(object.score)) throw DataError(fmt::format("picture {}: a score is {}", picture, object.score));
    categories[object.category].second.push_back(&object);
  }
  PictureMatches matches;
  for (const auto& [category, objects] : categories)
    matches.push_back(match_category(what, picture, category, objects.first, objects.second));
  return matches;
}

}  // namespace dtrain::train
