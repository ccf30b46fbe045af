#include <algorithm>
#include <iterator>

#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"
#include "doubles.hpp"
#include "kept_objects.hpp"
#include "regions.hpp"

namespace dtrain::backend {
namespace {

// The share of each class, the background first.
void softmax_of(const HeadValues<const float>& logits, std::int64_t region, std::span<double> shares) {
  double most = logits.at(region, 0);
  for (std::size_t k = 0; k < shares.size(); ++k) {
    shares[k] = logits.at(region, static_cast<std::int64_t>(k));
    most = std::max(most, shares[k]);
  }
  double sum = 0;
  for (double& share : shares) sum += share = bounded_exp(share - most);
  for (double& share : shares) share /= sum;
}

}  // namespace

std::vector<Region> find_regions(const nn::FoundRegions& layer, std::span<const Region> regions,
                                 const nn::PictureObjects* objects, const Heads<const float>& heads) {
  const nn::Detections& found = layer.found;
  const int height = objects ? objects->height : found.image_height,
            width = objects ? objects->width : found.image_width;
  std::vector<double> shares(static_cast<std::size_t>(found.classes) + 1);
  std::vector<Candidate> all;
  for (std::int64_t i = 0; i < std::ssize(regions); ++i) {
    const Region& region = regions[static_cast<std::size_t>(i)];
    if (!region.is_there()) continue;
    softmax_of(heads.classes, i, shares);
    for (std::int32_t k = 0; k < found.classes; ++k) {
      const auto score = static_cast<float>(shares[static_cast<std::size_t>(k) + 1]);
      if (!(score > found.score_threshold)) continue;
      BoxCode code;
      for (std::size_t side = 0; side < code.size(); ++side) {
        code[side] = heads.boxes.at(i, (k + 1) * 4 + static_cast<std::int64_t>(side));
      }
      const nn::Box box = clipped(decode_region(region.box, code), height, width);
      if (is_at_least(box, kSmallestObject)) all.push_back({score, k, i, box});
    }
  }
  std::ranges::sort(all, is_better);
  std::vector<Region> kept;
  for (const Candidate& each : without_doubles(all, found.overlap_threshold, found.detections)) {
    kept.push_back({each.box, each.score, static_cast<float>(each.label)});
  }
  kept.resize(static_cast<std::size_t>(found.detections));
  return kept;
}

std::vector<Region> object_regions(const nn::FoundRegions& layer, std::span<const Region> regions) {
  std::vector<Region> objects, kept(static_cast<std::size_t>(layer.found.detections));
  std::ranges::copy_if(regions, std::back_inserter(objects), &Region::is_object);
  const auto all = static_cast<std::int32_t>(objects.size());
  for (std::int32_t k = 0; k < all; ++k) {
    const std::int32_t row = row_of_object(k, all, layer.found.detections);
    if (row != kNoRow) kept[static_cast<std::size_t>(row)] = objects[static_cast<std::size_t>(k)];
  }
  return kept;
}

void write_results(const nn::Detections& found, std::span<const Region> regions, const HeadValues<const float>& masks,
                   int mask_rows, std::span<float> result) {
  std::ranges::fill(result, 0.0f);
  for (std::size_t i = 0; i < regions.size() && regions[i].is_there(); ++i) {
    const Region& region = regions[i];
    float* to = result.data() + static_cast<std::int64_t>(i) * found.row_size();
    for (const float value :
         {region.box.left, region.box.top, region.box.right, region.box.bottom, region.value, region.label}) {
      *to++ = value;
    }
    if (!masks.values) continue;
    const std::int64_t first = static_cast<std::int64_t>(i) * mask_rows * found.mask;
    for (std::int64_t point = 0; point < std::int64_t{found.mask} * found.mask; ++point) {
      const double logit = masks.at(first + point, static_cast<std::int64_t>(region.label) + 1);
      *to++ = static_cast<float>(sigmoid_of(logit));
    }
  }
}

std::vector<Region> read_regions(const HeadValues<const float>& values, std::size_t count) {
  std::vector<Region> regions(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::int64_t which) { return values.at(static_cast<std::int64_t>(i), which); };
    regions[i] = {{at(0), at(1), at(2), at(3)}, at(4), at(5)};
  }
  return regions;
}

void write_regions(std::span<const Region> regions, const HeadValues<float>& values) {
  for (std::int64_t i = 0; i < std::ssize(regions); ++i) {
    const Region& region = regions[static_cast<std::size_t>(i)];
    std::int64_t which = 0;
    for (const float value :
         {region.box.left, region.box.top, region.box.right, region.box.bottom, region.value, region.label}) {
      values.at(i, which++) = value;
    }
  }
}

}  // namespace dtrain::backend
