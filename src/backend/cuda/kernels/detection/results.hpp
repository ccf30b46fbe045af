// What a detector finds: nn::FoundRegions, and the rows of nn::Detections.
#pragma once

#include "../../../detection/kept_objects.hpp"
#include "propose.hpp"

namespace dtrain::backend::cuda {

// ---- one stage

// Keys of the scores above the threshold: [n][anchor][class]. Thread = key.
template <typename T>
struct ScoreKeys {
  const T* logits;
  std::uint32_t* keys;
  AnchorGrid grid;
  std::int64_t n;
  std::int32_t classes;
  float threshold;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.anchors() * classes; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t anchors = i / classes, sample = anchors / grid.anchors();
    const auto anchor = static_cast<std::int32_t>(anchors % grid.anchors());
    const float score = score_of(logits, grid, sample, anchor, static_cast<std::int32_t>(i % classes), classes);
    keys[i] = score > threshold ? key_of(score) : 0;
  }
  DTRAIN_KERNEL static float score_of(const T* logits, const AnchorGrid& grid, std::int64_t sample, std::int32_t anchor,
                                      std::int32_t label, std::int32_t classes) {
    return static_cast<float>(sigmoid_of(widen(logits[AnchorHead<T>::place(grid, sample, anchor, classes) + label])));
  }
};

// The boxes of the scores that were picked of each level, in one group. Thread = pick.
template <typename T>
struct ScoredBoxes {
  const Samples* from;
  const T* logits;
  const T* codes;
  const std::int32_t* picks;
  RatedBox* boxes;
  AnchorGrid grid;
  Segments segments;
  std::int64_t n;
  std::int32_t classes;
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.picks; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / segments.picks;
    const std::int32_t pick = picks[i];
    boxes[i] = no_box(static_cast<std::int32_t>(i % segments.picks));
    if (pick < 0) return;
    const std::int32_t anchor = pick / classes, label = pick % classes;
    const PictureRow picture = from->pictures.picture(sample, grid.image_h, grid.image_w);
    const nn::Box moved = decode_box(grid.box(anchor), code_at(codes, AnchorHead<T>::place(grid, sample, anchor, 4)));
    boxes[i] = rated_box(ScoreKeys<T>::score_of(logits, grid, sample, anchor, label, classes), anchor, label,
                         clipped(moved, picture.height, picture.width));
  }
};

// ---- two stages

// In training: the regions that are objects, those with a row. Rows behind them were filled before. Thread = region.
struct KeepObjects {
  const float* from;  // [n][regions]
  float* to;          // [n][detections]
  std::int64_t n;
  std::int32_t regions, detections;
  DTRAIN_KERNEL std::int64_t threads() const { return n * regions; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const RegionRow region = read_region(from, i);
    if (!region.is_object()) return;
    const std::int64_t first = i / regions * regions;
    std::int32_t index = 0, objects = 0;
    for (std::int64_t other = first; other < first + regions; ++other) {
      const bool is_object = read_region(from, other).is_object();
      objects += is_object;
      index += is_object && other < i;
    }
    const std::int32_t row = row_of_object(index, objects, detections);
    if (row == kNoRow) return;
    write_region(region.box, region.value, region.label, to + (i / regions * detections + row) * nn::kRegion);
  }
};

// In evaluation: each class in each region, a group a class. Thread = region.
template <typename T>
struct ClassifiedBoxes {
  const Samples* from;
  const float* rows;  // [n][regions]
  const T* logits;    // [n, regions, classes], the background first
  const T* codes;     // [n, regions, classes, 4]
  RatedBox* boxes;    // [n][class without the background][region]
  std::int64_t n;
  std::int32_t regions, classes, image_h, image_w;
  float threshold;
  DTRAIN_KERNEL std::int64_t threads() const { return n * regions; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / regions;
    const auto index = static_cast<std::int32_t>(i % regions);
    const RegionRow region = read_region(rows, i);
    const PictureRow picture = from->pictures.picture(sample, image_h, image_w);
    const T* const of = logits + i * classes;
    double most = widen(of[0]), sum = 0;
    for (std::int32_t k = 1; k < classes; ++k) most = widen(of[k]) > most ? widen(of[k]) : most;
    for (std::int32_t k = 0; k < classes; ++k) sum += bounded_exp(widen(of[k]) - most);
    for (std::int32_t k = 0; k + 1 < classes; ++k) {
      RatedBox& to = boxes[(sample * (classes - 1) + k) * regions + index];
      to = no_box(index);
      const auto score = static_cast<float>(bounded_exp(widen(of[k + 1]) - most) / sum);
      if (!region.is_there() || !(score > threshold)) continue;
      const nn::Box moved = decode_region(region.box, code_at(codes, (i * classes + k + 1) * 4));
      const nn::Box box = clipped(moved, picture.height, picture.width);
      if (is_at_least(box, kSmallestObject)) to = rated_box(score, index, k, box);
    }
  }
};

// Rows of Detections without masks. Thread = row.
struct WriteDetections {
  const RatedBox* boxes;  // [n][detections]
  float* to;
  std::int64_t n;
  std::int32_t detections;
  DTRAIN_KERNEL std::int64_t threads() const { return n * detections; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const RatedBox& box = boxes[i];
    write_region(box.box, box.score, static_cast<float>(box.label), to + i * nn::Detections::kRow);
  }
};

// Rows of Detections of the regions that were found, with their masks. Thread = number of a row.
template <typename T>
struct WriteFound {
  const float* rows;  // [n][detections]
  const T* logits;    // [n, h, side, classes], the background first; null: there are no masks
  float* to;
  std::int64_t n;
  std::int32_t detections, side, mask_rows, h, classes;
  DTRAIN_KERNEL std::int32_t width() const { return nn::Detections::kRow + side * side; }
  DTRAIN_KERNEL std::int64_t threads() const { return n * detections * width(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t row = i / width(), sample = row / detections;
    const auto number = static_cast<std::int32_t>(i % width());
    const RegionRow region = read_region(rows, row);
    to[i] = 0;
    if (!region.is_there()) return;
    if (number < nn::Detections::kRow) {
      to[i] = rows[row * nn::kRegion + number];
      return;
    }
    if (!logits) return;
    const std::int64_t pixel = (sample * h + row % detections * mask_rows) * side + number - nn::Detections::kRow;
    to[i] =
        static_cast<float>(sigmoid_of(widen(logits[pixel * classes + static_cast<std::int64_t>(region.label) + 1])));
  }
};

}  // namespace dtrain::backend::cuda
