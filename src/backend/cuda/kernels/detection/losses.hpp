// The losses of detectors and their gradients: nn::DetectionLoss and nn::RegionLoss. A thread computes the terms of an
// item, which are added up in double in parts of fixed size.
#pragma once

#include "../../../detection/region_points.hpp"
#include "propose.hpp"

namespace dtrain::backend::cuda {

// Terms of up to so many kinds: [n][size] floats of each.
constexpr int kMostTerms = 5;
struct LossTerms {
  const float* of[kMostTerms];
  std::int32_t sizes[kMostTerms];
  std::int32_t kinds;
};

// sums[n][kind][part]. Thread = part.
struct SumTerms {
  static constexpr std::int32_t kParts = 256;
  LossTerms terms;
  double* sums;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * terms.kinds * kParts; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t row = i / kParts, sample = row / terms.kinds;
    const auto kind = static_cast<std::int32_t>(row % terms.kinds);
    const float* of = nullptr;
    std::int32_t size = 0;
    DTRAIN_UNROLL
    for (int k = 0; k < kMostTerms; ++k) {  // indices known when compiled, so that nothing is copied to memory
      if (k == kind) of = terms.of[k], size = terms.sizes[k];
    }
    double sum = 0;
    for (auto item = static_cast<std::int32_t>(i % kParts); item < size; item += kParts)
      sum += of[sample * size + item];
    sums[i] = sum;
  }
};

// counts[sample] = {loss, 0, 0, 1, the loss of each kind}. Thread = sample.
struct FinishTerms {
  static constexpr std::int32_t kCounts = 4;
  const double* sums;
  float* counts;
  std::int64_t n;
  std::int32_t kinds;
  DTRAIN_KERNEL std::int32_t width() const { return kCounts + kinds; }
  DTRAIN_KERNEL std::int64_t threads() const { return n; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    float* const to = counts + i * width();
    double whole = 0;
    for (std::int32_t kind = 0; kind < kinds; ++kind) {
      double sum = 0;
      for (std::int32_t part = 0; part < SumTerms::kParts; ++part) {
        sum += sums[(i * kinds + kind) * SumTerms::kParts + part];
      }
      to[kCounts + kind] = static_cast<float>(sum);
      whole += sum;
    }
    to[0] = static_cast<float>(whole);
    to[1] = to[2] = 0;
    to[3] = 1;
  }
};

DTRAIN_KERNEL inline double share_of(std::int32_t count) { return 1.0 / (count > 1 ? count : 1); }
// A slope as it is stored: times the loss scale of float16.
template <typename T>
DTRAIN_KERNEL void store_slope(double slope, const float* scale, T& to) {
  narrow(static_cast<float>(slope) * (scale ? *scale : 1), to);
}

// ---- one stage

// shares[sample] = 1 / the number of anchors that are objects, in parts and then whole. Thread = part, and sample.
struct CountMatches {
  static constexpr std::int32_t kParts = 256;
  const std::int32_t* matches;
  std::int32_t* counts;  // [n][part]
  std::int64_t n;
  std::int32_t anchors;
  DTRAIN_KERNEL std::int64_t threads() const { return n * kParts; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int32_t* const of = matches + i / kParts * anchors;
    std::int32_t count = 0;
    for (auto anchor = static_cast<std::int32_t>(i % kParts); anchor < anchors; anchor += kParts) {
      count += of[anchor] >= 0;
    }
    counts[i] = count;
  }
};
struct ShareOfMatches {
  const std::int32_t* counts;
  double* shares;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    std::int32_t count = 0;
    for (std::int32_t part = 0; part < CountMatches::kParts; ++part) count += counts[i * CountMatches::kParts + part];
    shares[i] = share_of(count);
  }
};

// Focal loss of the classes and the distance of the codes. Thread = anchor of a pixel; between the levels, and of
// anchors that are neither, all is 0.
template <typename T>
struct AnchorLoss {
  const Samples* from;
  const T* logits;  // [n, pixels, at_pixel, classes]
  const T* codes;   // [n, pixels, at_pixel, 4]
  const std::int32_t* matches;
  const double* shares;
  T* dlogits;
  T* dcodes;
  float* class_terms;  // [n, pixels, at_pixel]
  float* box_terms;
  const float* scale;
  AnchorGrid grid;
  std::int64_t n;
  std::int32_t classes;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.pixels() * grid.at_pixel; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t pixels = i / grid.at_pixel, sample = pixels / grid.pixels();
    const std::int32_t anchor =
        grid.anchor_at(static_cast<std::int32_t>(pixels % grid.pixels()), static_cast<std::int32_t>(i % grid.at_pixel));
    const std::int32_t match = anchor < 0 ? kNeither : matches[sample * grid.anchors() + anchor];
    const PictureRow picture = from->pictures.picture(sample, grid.image_h, grid.image_w);
    const double share = shares[sample];
    const std::int32_t wanted = match >= 0 ? from->pictures.classes[picture.first + match] : -1;
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) {
      LossTerm term;
      if (match != kNeither) term = focal_term(widen(logits[i * classes + k]), k == wanted);
      sum += term.loss;
      store_slope(term.slope * share, scale, dlogits[i * classes + k]);
    }
    class_terms[i] = static_cast<float>(sum * share);
    BoxCode code{};
    if (match >= 0) code = encode_box(grid.box(anchor), from->pictures.boxes[picture.first + match]);
    sum = 0;
    for (std::int64_t side = 0; side < 4; ++side) {
      const double away = match >= 0 ? static_cast<double>(widen(codes[i * 4 + side])) - code_side(code, side) : 0.0;
      sum += away < 0 ? -away : away;
      store_slope(away > 0 ? share : away < 0 ? -share : 0.0, scale, dcodes[i * 4 + side]);
    }
    box_terms[i] = static_cast<float>(sum * share);
  }
  // A code stays in registers where nothing indexes it by a number that is not known when compiled.
  DTRAIN_KERNEL static double code_side(const BoxCode& code, std::int64_t side) {
    return side < 2 ? (side == 0 ? code[0] : code[1]) : (side == 2 ? code[2] : code[3]);
  }
};

// ---- two stages

// The distance of four codes from what they should be; writes their slopes.
template <typename T>
DTRAIN_KERNEL double code_distance(const T* codes, const BoxCode& wanted, double share, const float* scale, T* slopes) {
  double sum = 0;
  DTRAIN_UNROLL
  for (int side = 0; side < 4; ++side) {
    const LossTerm term = smooth_distance(static_cast<double>(widen(codes[side])) -
                                          static_cast<double>(wanted[static_cast<std::size_t>(side)]));
    sum += term.loss * share;
    store_slope(term.slope * share, scale, slopes[side]);
  }
  return sum;
}

// Keys by which anchors are drawn: [n][objects, background][anchor]. A word counts for as much as the one below it
// where that is the greatest of all. Thread = anchor.
struct DrawKeys {
  const std::int32_t* matches;
  std::uint32_t* keys;
  DrawNames names;
  std::int64_t n;
  std::int32_t anchors;
  DTRAIN_KERNEL std::int64_t threads() const { return n * anchors; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / anchors;
    const auto anchor = static_cast<std::int32_t>(i % anchors);
    const std::uint32_t key = ~names.word(sample, anchor), some = key == 0 ? 1 : key;
    std::uint32_t* const to = keys + sample * 2 * anchors + anchor;
    to[0] = matches[i] >= 0 ? some : 0;
    to[anchors] = matches[i] == kBackground ? some : 0;
  }
};

// Cross-entropy of the anchors that were drawn and the distance of the codes of objects. Slopes of others were set to
// 0 before. Thread = pick.
template <typename T>
struct DrawnAnchorLoss {
  const Samples* from;
  const T* logits;  // [n, pixels, at_pixel]
  const T* codes;   // [n, pixels, at_pixel, 4]
  const std::int32_t* matches;
  const std::int32_t* picks;
  const std::uint32_t* keys;  // of DrawKeys
  T* dlogits;
  T* dcodes;
  float* object_terms;  // [n][segments.picks]
  float* box_terms;
  const float* scale;
  AnchorGrid grid;
  Segments segments;  // objects, background
  std::int64_t n;
  std::int32_t drawn;  // at most, of both
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.picks; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / segments.picks;
    const auto place = static_cast<std::int32_t>(i % segments.picks);
    const std::int32_t* const of = picks + sample * segments.picks;
    object_terms[i] = box_terms[i] = 0;
    const std::int32_t objects = number_of(of, segments.of[0]), rest = drawn - objects;
    const std::int32_t background = number_of(of, segments.of[1]);
    const bool is_object = place < segments.of[1].place;
    if (of[place] < 0 || (!is_object && rank_of(sample, of, place) >= rest)) return;
    const double share = share_of(objects + (background < rest ? background : rest));
    const std::int32_t anchor = is_object ? of[place] : of[place] - segments.of[1].first;
    const std::int64_t at = AnchorHead<T>::place(grid, sample, anchor, 1);
    const LossTerm term = sigmoid_term(0, is_object, widen(logits[at]));
    object_terms[i] = static_cast<float>(term.loss * share);
    store_slope(term.slope * share, scale, dlogits[at]);
    if (!is_object) return;
    const PictureRow picture = from->pictures.picture(sample, grid.image_h, grid.image_w);
    const std::int32_t match = matches[sample * grid.anchors() + anchor];
    const BoxCode wanted = encode_box(grid.box(anchor), from->pictures.boxes[picture.first + match]);
    box_terms[i] = static_cast<float>(code_distance(codes + at * 4, wanted, share, scale, dcodes + at * 4));
  }

 private:
  DTRAIN_KERNEL static std::int32_t number_of(const std::int32_t* of, const Segment& segment) {
    std::int32_t number = 0;
    for (std::int32_t k = 0; k < segment.take; ++k) number += of[segment.place + k] >= 0;
    return number;
  }
  // Among the background that was picked; picks are in the order of the items.
  DTRAIN_KERNEL std::int32_t rank_of(std::int64_t sample, const std::int32_t* of, std::int32_t place) const {
    const std::uint32_t* const row = keys + sample * segments.keys;
    const std::uint32_t own = row[of[place]];
    std::int32_t rank = 0;
    for (std::int32_t other = segments.of[1].place; other < segments.picks; ++other) {
      if (of[other] < 0) continue;
      const std::uint32_t key = row[of[other]];
      rank += key != own ? key > own : other < place;
    }
    return rank;
  }
};

// How many regions are there, and how many of the found ones are objects: [n][2]. Both come first. Thread = sample.
struct CountRegions {
  const float* all;
  const float* found;
  std::int32_t* counts;
  std::int64_t n;
  std::int32_t regions, detections;
  DTRAIN_KERNEL std::int64_t threads() const { return n; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    std::int32_t there = 0, objects = 0;
    for (std::int32_t k = 0; k < regions; ++k) there += read_region(all, i * regions + k).is_there();
    for (std::int32_t k = 0; k < detections; ++k) objects += read_region(found, i * detections + k).is_object();
    counts[2 * i] = there;
    counts[2 * i + 1] = objects;
  }
};

// Cross-entropy of the classes of a region, the background first, and the distance of its codes. Thread = region.
template <typename T>
struct RegionHeadLoss {
  const Samples* from;
  const float* rows;
  const std::int32_t* counts;  // of CountRegions
  const T* logits;             // [n, regions, classes]
  const T* codes;              // [n, regions, classes, 4]
  T* dlogits;
  T* dcodes;
  float* class_terms;  // [n][regions]
  float* box_terms;
  const float* scale;
  std::int64_t n;
  std::int32_t regions, classes;  // with the background
  DTRAIN_KERNEL std::int64_t threads() const { return n * regions; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / regions;
    const std::int32_t count = counts[2 * sample];
    const bool is_there = i % regions < count;
    const RegionRow region = read_region(rows, i);
    const std::int64_t label = is_there && region.is_object() ? static_cast<std::int64_t>(region.label) + 1 : 0;
    const double share = share_of(count);
    class_terms[i] = is_there ? static_cast<float>(entropy(i, label, share)) : nothing(dlogits + i * classes, classes);
    box_terms[i] = nothing(dcodes + i * classes * 4, std::int64_t{classes} * 4);
    if (label == 0) return;
    const PictureRow picture = from->pictures.picture(sample, 0, 0);
    const nn::Box box = from->pictures.boxes[picture.first + static_cast<std::int32_t>(region.value)];
    const std::int64_t first = (i * classes + label) * 4;
    box_terms[i] =
        static_cast<float>(code_distance(codes + first, encode_region(region.box, box), share, scale, dcodes + first));
  }

 private:
  DTRAIN_KERNEL static float nothing(T* slopes, std::int64_t size) {
    for (std::int64_t k = 0; k < size; ++k) narrow(0.0f, slopes[k]);
    return 0;
  }
  DTRAIN_KERNEL double entropy(std::int64_t i, std::int64_t label, double share) const {
    const T* const of = logits + i * classes;
    double most = widen(of[0]), sum = 0;
    for (std::int32_t k = 1; k < classes; ++k) most = widen(of[k]) > most ? widen(of[k]) : most;
    for (std::int32_t k = 0; k < classes; ++k) sum += bounded_exp(widen(of[k]) - most);
    for (std::int32_t k = 0; k < classes; ++k) {
      const double likely = bounded_exp(widen(of[k]) - most) / sum;
      store_slope((likely - (k == label ? 1 : 0)) * share, scale, dlogits[i * classes + k]);
    }
    return share * (portable_log(sum) - (widen(of[label]) - most));
  }
};

// Cross-entropy of the points of the masks of found regions. Slopes of other classes and between the masks were set to
// 0 before. Thread = point of a region's mask.
template <typename T>
struct MaskLoss {
  const Samples* from;
  const float* rows;           // [n][detections]
  const std::int32_t* counts;  // of CountRegions
  const T* logits;             // [n, h, side, classes]
  T* dlogits;
  float* terms;  // [n][detections][side * side]
  const float* scale;
  std::int64_t n;
  std::int32_t detections, side, mask_rows, h, classes;  // from one mask to the next; rows of all; with the background
  std::int32_t image_h, image_w;
  DTRAIN_KERNEL std::int64_t threads() const { return n * detections * side * side; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t of_all = i / (side * side), sample = of_all / detections;
    const auto point = static_cast<std::int32_t>(i % (side * side)),
               index = static_cast<std::int32_t>(of_all % detections);
    terms[i] = 0;
    const std::int32_t count = counts[2 * sample + 1];
    if (index >= count) return;
    const RegionRow region = read_region(rows, of_all);
    const std::int32_t words = mask_words(image_w);
    const PictureRow picture = from->pictures.picture(sample, image_h, image_w);
    const std::uint32_t* const mask =
        from->pictures.masks + std::int64_t{picture.first + static_cast<std::int32_t>(region.value)} * image_h * words;
    const double target =
        mask_point(grid_of(region.box, 1, side), point / side, point % side, image_h, image_w, [&](std::int32_t pixel) {
          const std::int32_t y = pixel / image_w, x = pixel % image_w;
          return (mask[y * words + x / 32] >> (x % 32) & 1) != 0;
        });
    const std::int64_t pixel = (sample * h + std::int64_t{index} * mask_rows) * side + point;
    const std::int64_t at = pixel * classes + static_cast<std::int64_t>(region.label) + 1;
    const double share = share_of(count * side * side);
    const LossTerm term = sigmoid_term(0, target, widen(logits[at]));
    terms[i] = static_cast<float>(term.loss * share);
    store_slope(term.slope * share, scale, dlogits[at]);
  }
};

}  // namespace dtrain::backend::cuda
