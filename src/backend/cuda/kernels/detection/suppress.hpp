// Of boxes that overlap much the better one stays: without_doubles() of backend/detection, in groups whose boxes know
// nothing of each other. Boxes are ranked by counting, since their order has no equals.
#pragma once

#include "../../../detection/boxes.hpp"
#include "select.hpp"

namespace dtrain::backend::cuda {

struct RatedBox {
  std::uint32_t key = 0;    // by the score; 0: there is none
  std::int32_t origin = 0;  // of equal scores the lower comes first, then the lower label
  std::int32_t label = 0;   // boxes of two labels do not meet
  float score = 0;
  nn::Box box = {};
};

DTRAIN_KERNEL inline RatedBox rated_box(float score, std::int32_t origin, std::int32_t label, const nn::Box& box) {
  return {key_of(score), origin, label, score, box};
}
// Which place is empty makes its order.
DTRAIN_KERNEL inline RatedBox no_box(std::int32_t place) { return {0, place, 0, 0, {}}; }

DTRAIN_KERNEL inline bool is_before(const RatedBox& a, const RatedBox& b) {
  if (a.key != b.key) return a.key > b.key;
  return a.origin != b.origin ? a.origin < b.origin : a.label < b.label;
}

// `size` boxes in each of n * groups rows.
struct BoxGroups {
  std::int64_t n;
  std::int32_t groups, size;
  DTRAIN_KERNEL std::int64_t rows() const { return n * groups; }
  DTRAIN_KERNEL std::int64_t boxes() const { return rows() * size; }
  DTRAIN_KERNEL std::int32_t words() const { return (size + 63) / 64; }
};

// to = the boxes of each row of `from`, the best first. Thread = box.
struct RankBoxes {
  const RatedBox* from;
  RatedBox* to;
  BoxGroups in;
  DTRAIN_KERNEL std::int64_t threads() const { return in.boxes(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i / in.size * in.size;
    const RatedBox box = from[i];
    std::int32_t rank = 0;
    for (std::int64_t other = first; other < first + in.size; ++other) rank += is_before(from[other], box);
    to[first + rank] = box;
  }
};

// Which of the boxes behind a box overlap it by more than the threshold: bits[row][box][word]. Thread = word.
struct OverlapBits {
  const RatedBox* boxes;
  std::uint64_t* bits;
  BoxGroups in;
  float threshold;
  DTRAIN_KERNEL std::int64_t threads() const { return in.boxes() * in.words(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t place = i / in.words(), first = place / in.size * in.size;
    const auto box = static_cast<std::int32_t>(place - first), begin = static_cast<std::int32_t>(i % in.words()) * 64;
    const RatedBox better = boxes[place];
    std::uint64_t found = 0;
    const std::int32_t end = begin + 64 < in.size ? begin + 64 : in.size;
    for (std::int32_t other = begin > box ? begin : box + 1; other < end && better.key > 0; ++other) {
      const RatedBox& worse = boxes[first + other];
      const bool overlaps =
          worse.key > 0 && worse.label == better.label && overlap_of(better.box, worse.box) > threshold;
      found |= static_cast<std::uint64_t>(overlaps) << (other - begin);
    }
    bits[i] = found;
  }
};

// Which of 64 boxes no better one that stays overlaps, at most `most` of a row in all; launched for one word after the
// other. kept_before[row][box] is how many of those before a box stay, with one number more for the row's end. Thread =
// row and a word from this one on: each finds out which boxes stay, and drops in its own word what these overlap.
struct KeepBest {
  static constexpr int kAtOnce = 8;
  const RatedBox* boxes;
  const std::uint64_t* bits;
  std::uint64_t* dropped;  // [row][word]: overlapped by a box of the words before
  std::int32_t* kept_before;
  BoxGroups in;
  std::int32_t most, word;
  DTRAIN_KERNEL std::int64_t threads() const { return in.rows() * (in.words() - word); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int32_t words = in.words(), left = words - word;
    const std::int64_t row = i / left, later = word + i % left;
    const std::int32_t first = word * 64, end = first + 64 < in.size ? first + 64 : in.size;
    const RatedBox* const of = boxes + row * in.size;
    const std::uint64_t* const overlaps = bits + row * in.size * words;
    std::int32_t* const before = kept_before + row * (in.size + 1);
    std::int32_t kept = word == 0 ? 0 : before[first];
    std::uint64_t gone = word == 0 ? 0 : dropped[row * words + word],
                  more = word == 0 ? 0 : dropped[row * words + later];
    for (std::int32_t begin = first; begin < end; begin += kAtOnce) {
      std::uint64_t here[kAtOnce], there[kAtOnce];
      bool is_there[kAtOnce];
      DTRAIN_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const std::int64_t box = begin + k < end ? begin + k : end - 1;
        here[k] = overlaps[box * words + word];
        there[k] = overlaps[box * words + later];
        is_there[k] = begin + k < end && of[box].key > 0;
      }
      DTRAIN_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const bool stays = is_there[k] && kept < most && (gone >> (begin + k - first) & 1) == 0;
        gone |= stays ? here[k] : 0;
        more |= stays ? there[k] : 0;
        kept += stays;
        if (later == word && begin + k < end) before[begin + k + 1] = kept;
      }
    }
    if (later > word) dropped[row * words + later] = more;
    if (i % left == 0 && word == 0) before[0] = 0;
  }
};

// The best `most` of the boxes that stay, of all groups of a sample; boxes of key 0 behind them. Thread = box, and then
// place of the result.
struct MergeKept {
  const RatedBox* boxes;
  const std::int32_t* kept_before;
  RatedBox* to;         // [n][most]
  std::int32_t* found;  // [n]: how many there are
  BoxGroups in;
  std::int32_t most;
  DTRAIN_KERNEL std::int64_t threads() const { return in.boxes() + in.n * most; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { i < in.boxes() ? place(i) : end(i - in.boxes()); }

 private:
  DTRAIN_KERNEL void place(std::int64_t i) const {
    const std::int64_t row = i / in.size, sample = row / in.groups, first = row * in.size;
    const std::int32_t* const before = kept_before + row * (in.size + 1) + (i - first);
    if (before[1] == before[0]) return;
    const RatedBox box = boxes[i];
    std::int32_t rank = 0;
    for (std::int64_t other = sample * in.groups; other < (sample + 1) * in.groups; ++other) {
      rank += other == row ? before[0] : kept_before_box(other, box);
    }
    if (rank < most) to[sample * most + rank] = box;
  }
  // Of another row.
  DTRAIN_KERNEL std::int32_t kept_before_box(std::int64_t row, const RatedBox& box) const {
    std::int32_t low = 0, high = in.size;
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if (is_before(boxes[row * in.size + middle], box)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return kept_before[row * (in.size + 1) + low];
  }
  DTRAIN_KERNEL void end(std::int64_t i) const {
    const std::int64_t sample = i / most;
    const auto place = static_cast<std::int32_t>(i % most);
    std::int32_t total = 0;
    for (std::int64_t row = sample * in.groups; row < (sample + 1) * in.groups; ++row) {
      total += kept_before[row * (in.size + 1) + in.size];
    }
    if (place >= total) to[i] = no_box(place);
    if (place == 0) found[sample] = total < most ? total : most;
  }
};

}  // namespace dtrain::backend::cuda
