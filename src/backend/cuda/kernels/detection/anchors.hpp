// Anchors, and which object each of them stands for: match_anchors() of backend/detection.
#pragma once

#include <dtrain/backend/detection.hpp>

#include "../../../detection/boxes.hpp"
#include "../../../detection/match.hpp"
#include "../input.hpp"
#include "levels.hpp"

namespace dtrain::backend::cuda {

// An AnchorSet as a kernel has it: by value.
struct AnchorGrid {
  static constexpr int kMostShapes = 9;
  LevelGrid levels;
  std::int32_t image_h, image_w;
  std::int32_t at_pixel;                     // anchors
  std::int32_t first[kMostLevels + 1];       // anchor of each level
  AnchorSet::Step steps[kMostLevels];        // from one location to the next
  nn::Box shapes[kMostLevels][kMostShapes];  // around 0, 0

  DTRAIN_KERNEL std::int32_t anchors() const { return first[levels.count]; }
  DTRAIN_KERNEL std::int32_t pixels() const { return levels.h * levels.w; }

  struct Place {
    std::int32_t level, y, x, shape;
  };
  DTRAIN_KERNEL Place place_of(std::int32_t anchor) const {
    std::int32_t level = 0;
    while (anchor >= first[level + 1]) ++level;
    const std::int32_t here = anchor - first[level], location = here / at_pixel, width = levels.places[level].width;
    return {level, location / width, location % width, here % at_pixel};
  }
  DTRAIN_KERNEL nn::Box box_at(const Place& at) const {
    const auto across = static_cast<float>(at.x * steps[at.level].x),
               down = static_cast<float>(at.y * steps[at.level].y);
    const nn::Box shape = shapes[at.level][at.shape];
    return {across + shape.left, down + shape.top, across + shape.right, down + shape.bottom};
  }
  DTRAIN_KERNEL nn::Box box(std::int32_t anchor) const { return box_at(place_of(anchor)); }
  // In the value that holds all levels.
  DTRAIN_KERNEL std::int32_t pixel_at(const Place& at) const {
    const nn::LevelPlace& place = levels.places[at.level];
    return (place.top + at.y) * levels.w + place.left + at.x;
  }
  // -1 between the levels.
  DTRAIN_KERNEL std::int32_t anchor_at(std::int32_t pixel, std::int32_t shape) const {
    const std::int32_t y = pixel / levels.w, x = pixel % levels.w, level = levels.level_at(y, x);
    if (level < 0) return -1;
    const nn::LevelPlace& place = levels.places[level];
    return first[level] + ((y - place.top) * place.width + x - place.left) * at_pixel + shape;
  }
};

// `image`: height and width.
inline AnchorGrid anchor_grid(const AnchorSet& set, const nn::Levels& levels, nn::Extent image) {
  AnchorGrid grid{};
  grid.levels = level_grid(levels);
  grid.image_h = image.height, grid.image_w = image.width;
  grid.at_pixel = static_cast<std::int32_t>(set.at_pixel);
  for (int level = 0; level < levels.count; ++level) {
    const auto index = static_cast<std::size_t>(level);
    grid.first[level] = static_cast<std::int32_t>(set.level_begins[index]);
    grid.steps[level] = set.steps[index];
    for (int shape = 0; shape < grid.at_pixel; ++shape) {
      grid.shapes[level][shape] =
          set.boxes[static_cast<std::size_t>(grid.first[level]) + static_cast<std::size_t>(shape)];
    }
  }
  grid.first[levels.count] = static_cast<std::int32_t>(set.level_begins.back());
  return grid;
}

// The greatest overlap of each object with some of the anchors. Thread = picture and every kOverlapParts-th anchor.
struct PartOverlaps {
  const Samples* from;
  AnchorGrid grid;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * kOverlapParts; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / kOverlapParts, part = i % kOverlapParts;
    const PictureTable& pictures = from->pictures;
    const PictureRow picture = pictures.picture(sample, grid.image_h, grid.image_w);
    for (std::int64_t object = picture.first; object < picture.first + picture.objects; ++object) {
      const nn::Box box = pictures.boxes[object];
      float best = 0;
      for (auto anchor = static_cast<std::int32_t>(part); anchor < grid.anchors(); anchor += kOverlapParts) {
        const float overlap = overlap_of(box, grid.box(anchor));
        if (overlap > best) best = overlap;
      }
      pictures.part_overlaps[object * kOverlapParts + part] = best;
    }
  }
};

// The greatest of the parts. Thread = picture and every kObjectLanes-th object.
struct BestOverlaps {
  const Samples* from;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * kObjectLanes; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PictureTable& pictures = from->pictures;
    const PictureRow picture = pictures.picture(i / kObjectLanes, 0, 0);
    for (auto k = static_cast<std::int32_t>(i % kObjectLanes); k < picture.objects; k += kObjectLanes) {
      const std::int64_t object = picture.first + k;
      float best = 0;
      for (std::int32_t part = 0; part < kOverlapParts; ++part) {
        const float overlap = pictures.part_overlaps[object * kOverlapParts + part];
        best = overlap > best ? overlap : best;
      }
      pictures.best_overlaps[object] = best;
    }
  }
};

// What a box stands for, where only its own overlaps count.
DTRAIN_KERNEL inline std::int32_t match_by_overlap(float best, std::int32_t nearest, const MatchRule& rule) {
  return best < rule.background_below ? kBackground : best < rule.object_from ? kNeither : nearest;
}

// matches[sample][anchor]. Thread = picture and anchor.
struct MatchAnchors {
  const Samples* from;
  AnchorGrid grid;
  MatchRule rule;
  std::int32_t* matches;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.anchors(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PictureTable& pictures = from->pictures;
    const PictureRow picture = pictures.picture(i / grid.anchors(), grid.image_h, grid.image_w);
    const nn::Box box = grid.box(static_cast<std::int32_t>(i % grid.anchors()));
    float best = -1;
    std::int32_t nearest = kBackground;
    bool is_best_of_object = false;
    for (std::int32_t k = 0; k < picture.objects; ++k) {
      const float overlap = overlap_of(pictures.boxes[picture.first + k], box);
      if (overlap > best) best = overlap, nearest = k;
      const float best_of_object = pictures.best_overlaps[picture.first + k];
      is_best_of_object = is_best_of_object || (best_of_object > 0 && overlap == best_of_object);
    }
    matches[i] = rule.best_always && is_best_of_object ? nearest : match_by_overlap(best, nearest, rule);
  }
};

}  // namespace dtrain::backend::cuda
