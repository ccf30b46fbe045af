// The regions that may show an object: nn::Proposals. A row of regions is nn::kRegion floats.
#pragma once

#include "../../../detection/draw_words.hpp"
#include "../elementwise.hpp"
#include "anchors.hpp"
#include "suppress.hpp"

namespace dtrain::backend::cuda {

// Sets values to 0. Thread = four of them.
struct ClearFloats {
  float* to;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<float>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { store_pack(Pack<float>{}, to, i * Pack<float>::size, total); }
};

// What is drawn of a sample: see RegionDraw.
struct DrawNames {
  const DropoutKey* key;
  const std::uint32_t* sample_ids;
  std::int32_t node;
  DTRAIN_KERNEL std::uint32_t word(std::int64_t sample, std::int32_t item) const {
    const auto index = static_cast<std::uint32_t>(item);
    const PhiloxCounter words = draw_words(index / 4, static_cast<std::uint32_t>(node), sample_ids[sample], key->epoch,
                                           key->seed_low, key->seed_high);
    const std::uint32_t which = index % 4;
    return which < 2 ? (which == 0 ? words[0] : words[1]) : (which == 2 ? words[2] : words[3]);
  }
};

template <typename T>
DTRAIN_KERNEL BoxCode code_at(const T* codes, std::int64_t first) {
  return {widen(codes[first]), widen(codes[first + 1]), widen(codes[first + 2]), widen(codes[first + 3])};
}

// The values of a head that has `channels` for each anchor of a pixel.
template <typename T>
struct AnchorHead {
  const T* values;
  DTRAIN_KERNEL static std::int64_t place(const AnchorGrid& grid, std::int64_t sample, std::int32_t anchor,
                                          std::int32_t channels) {
    const AnchorGrid::Place at = grid.place_of(anchor);
    return ((sample * grid.pixels() + grid.pixel_at(at)) * grid.at_pixel + at.shape) * channels;
  }
};

// keys[sample][anchor]. Thread = anchor.
template <typename T>
struct AnchorKeys {
  const T* logits;
  std::uint32_t* keys;
  AnchorGrid grid;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.anchors(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / grid.anchors();
    const auto anchor = static_cast<std::int32_t>(i % grid.anchors());
    keys[i] = key_of(widen(logits[AnchorHead<T>::place(grid, sample, anchor, 1)]));
  }
};

// The boxes of the anchors that were picked of each level, a group a level. Thread = place of a group.
template <typename T>
struct ProposedBoxes {
  const Samples* from;
  const T* logits;
  const T* codes;
  const std::int32_t* picks;
  RatedBox* boxes;
  AnchorGrid grid;
  Segments segments;
  BoxGroups in;
  DTRAIN_KERNEL std::int64_t threads() const { return in.boxes(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / in.size / in.groups;
    const auto level = static_cast<std::int32_t>(i / in.size % in.groups),
               place = static_cast<std::int32_t>(i % in.size);
    const Segment& segment = segments.of[level];
    boxes[i] = no_box(place);
    if (place >= segment.take) return;
    const std::int32_t anchor = picks[sample * segments.picks + segment.place + place];
    if (anchor < 0) return;
    const PictureRow picture = from->pictures.picture(sample, grid.image_h, grid.image_w);
    const nn::Box moved = decode_box(grid.box(anchor), code_at(codes, AnchorHead<T>::place(grid, sample, anchor, 4)));
    const nn::Box box = clipped(moved, picture.height, picture.width);
    const float logit = widen(logits[AnchorHead<T>::place(grid, sample, anchor, 1)]);
    const float least = -std::numeric_limits<float>::infinity();
    const auto score = static_cast<float>(sigmoid_of(logit != logit ? least : logit));
    if (is_at_least(box, kSmallestRegion)) boxes[i] = rated_box(score, anchor, level, box);
  }
};

DTRAIN_KERNEL inline void write_region(const nn::Box& box, float value, float label, float* to) {
  to[0] = box.left, to[1] = box.top, to[2] = box.right, to[3] = box.bottom;
  to[4] = value, to[5] = label;
}
struct RegionRow {
  nn::Box box;
  float value, label;
  DTRAIN_KERNEL bool is_there() const { return box.right > box.left && box.bottom > box.top; }
  DTRAIN_KERNEL bool is_object() const { return is_there() && value >= 0; }
};
DTRAIN_KERNEL inline RegionRow read_region(const float* rows, std::int64_t index) {
  const float* const row = rows + index * nn::kRegion;
  return {{row[0], row[1], row[2], row[3]}, row[4], row[5]};
}

// Rows of regions of the best boxes. Thread = region.
struct WriteBoxes {
  const RatedBox* boxes;  // [n][regions]
  float* rows;
  std::int64_t n;
  std::int32_t regions;
  bool with_labels;
  DTRAIN_KERNEL std::int64_t threads() const { return n * regions; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const RatedBox& box = boxes[i];
    write_region(box.box, box.score, with_labels ? static_cast<float>(box.label) : 0.0f, rows + i * nn::kRegion);
  }
};

// What regions are drawn of in training: the proposed boxes, and behind them the objects.
struct ProposedItems {
  const Samples* from;
  const RatedBox* boxes;      // [n][most]
  const std::int32_t* found;  // [n]
  DrawnItem* items;           // [n][most]: of the boxes; those of the objects lie beside them
  std::int64_t n;
  std::int32_t most;

  struct Picture {
    PictureRow row;
    std::int64_t first;  // box of the sample
    std::int32_t boxes;
    DTRAIN_KERNEL std::int32_t items() const { return boxes + row.objects; }
  };
  DTRAIN_KERNEL std::int64_t lanes() const { return n * (most + kObjectLanes); }
  DTRAIN_KERNEL Picture picture(std::int64_t sample) const {
    return {from->pictures.picture(sample, 0, 0), sample * most, found[sample]};
  }
  DTRAIN_KERNEL DrawnItem& item(const Picture& of, std::int32_t index) const {
    return index < of.boxes ? items[of.first + index] : from->pictures.items[of.row.first + index - of.boxes];
  }
  DTRAIN_KERNEL nn::Box box(const Picture& of, std::int32_t index) const {
    return index < of.boxes ? boxes[of.first + index].box : from->pictures.boxes[of.row.first + index - of.boxes];
  }
  // Calls work(sample, picture, item) for those of thread i: a box, or some of the objects.
  template <typename Work>
  DTRAIN_KERNEL void for_items(std::int64_t i, Work work) const {
    const std::int64_t sample = i / (most + kObjectLanes);
    const auto lane = static_cast<std::int32_t>(i % (most + kObjectLanes));
    const Picture of = picture(sample);
    if (lane < most) {
      if (lane < of.boxes) work(sample, of, lane);
      return;
    }
    for (std::int32_t item = of.boxes + lane - most; item < of.items(); item += kObjectLanes) work(sample, of, item);
  }
};

// Thread = box, or every kObjectLanes-th object.
struct MatchItems {
  ProposedItems all;
  DrawNames names;
  DTRAIN_KERNEL std::int64_t threads() const { return all.lanes(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    constexpr MatchRule kRule{.background_below = 0.5f, .object_from = 0.5f, .best_always = false};
    all.for_items(i, [&](std::int64_t sample, const ProposedItems::Picture& of, std::int32_t item) {
      const nn::Box box = all.box(of, item);
      float best = -1;
      std::int32_t nearest = kBackground;
      for (std::int32_t k = 0; k < of.row.objects; ++k) {
        const float overlap = overlap_of(all.from->pictures.boxes[of.row.first + k], box);
        if (overlap > best) best = overlap, nearest = k;
      }
      all.item(of, item) = {match_by_overlap(best, nearest, kRule), names.word(sample, item), 0};
    });
  }
};

// Those with the lowest words, a quarter of the regions objects at most. Likewise.
struct DrawItems {
  ProposedItems all;
  std::int32_t regions;
  DTRAIN_KERNEL std::int64_t threads() const { return all.lanes(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    all.for_items(i, [&](std::int64_t, const ProposedItems::Picture& of, std::int32_t item) {
      DrawnItem& own = all.item(of, item);
      std::int32_t rank = 0, objects = 0;
      for (std::int32_t other = 0; other < of.items(); ++other) {
        const DrawnItem each = all.item(of, other);
        objects += each.match >= 0;
        const bool is_lower = each.word != own.word ? each.word < own.word : other < item;
        rank += (each.match >= 0) == (own.match >= 0) && is_lower;
      }
      const std::int32_t quarter = regions / 4, drawn = objects < quarter ? objects : quarter;
      own.is_drawn = rank < (own.match >= 0 ? drawn : regions - drawn);
    });
  }
};

// Rows of the regions that were drawn: objects, then background, each in the order of the items. The other rows were
// filled before. Likewise.
struct PlaceItems {
  ProposedItems all;
  float* rows;  // [n][regions]
  std::int32_t regions;
  DTRAIN_KERNEL std::int64_t threads() const { return all.lanes(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    all.for_items(i, [&](std::int64_t sample, const ProposedItems::Picture& of, std::int32_t item) {
      const DrawnItem own = all.item(of, item);
      if (!own.is_drawn) return;
      std::int32_t place = 0;
      for (std::int32_t other = 0; other < of.items(); ++other) {
        const DrawnItem each = all.item(of, other);
        if (!each.is_drawn) continue;
        const bool is_object = each.match >= 0;
        place += is_object == (own.match >= 0) ? other < item : is_object;
      }
      const bool is_object = own.match >= 0;
      const auto value = static_cast<float>(is_object ? own.match : kBackground);
      const auto label = static_cast<float>(is_object ? all.from->pictures.classes[of.row.first + own.match] : 0);
      write_region(all.box(of, item), value, label, rows + (sample * regions + place) * nn::kRegion);
    });
  }
};

}  // namespace dtrain::backend::cuda
