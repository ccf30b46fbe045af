// The items with the greatest keys of a row of them, of equal ones the first; in their order. By the digits of the keys
// from the top: a part of the items counts each digit in memory of its own, the counts are added up, and the digit is
// found at which the items are enough.
#pragma once

#include <bit>
#include <limits>

#include "levels.hpp"

namespace dtrain::backend::cuda {

// A key of 0 is never picked.
constexpr std::int32_t kDigits = 256;  // values of one
constexpr std::int32_t kDigitBits = 8;

struct Segment {
  std::int32_t first, size;  // items
  std::int32_t take, place;  // at most so many are picked; where they go
};

struct Segments {
  Segment of[kMostLevels];
  std::int32_t count;
  std::int32_t keys, picks;  // of a sample
  std::int32_t parts;        // of a segment

  DTRAIN_KERNEL std::int32_t part_size(const Segment& segment) const { return (segment.size + parts - 1) / parts; }
  // What thread i has: a part of a segment of a sample.
  struct Part {
    std::int64_t sample;
    std::int32_t segment, part, first, end;  // items of the sample
  };
  DTRAIN_KERNEL Part part_of(std::int64_t i) const {
    const auto part = static_cast<std::int32_t>(i % parts);
    const std::int64_t row = i / parts;
    const auto index = static_cast<std::int32_t>(row % count);
    const Segment& segment = of[index];
    const std::int32_t size = part_size(segment), begin = part * size, last = begin + size;
    return {row / count, index, part, segment.first + (begin < segment.size ? begin : segment.size),
            segment.first + (last < segment.size ? last : segment.size)};
  }
  void add(std::int32_t size, std::int32_t take) {
    constexpr std::int32_t kFewest = 64, kMostParts = 256;
    take = take < size ? take : size;
    of[count++] = {keys, size, take, picks};
    keys += size;
    picks += take;
    const std::int32_t wanted = (size + kFewest - 1) / kFewest;
    parts = std::max(parts, std::min(wanted, kMostParts));
  }
};

// What is known of the smallest key that is picked: its first digits, and how many are to be picked among those that
// begin with them.
struct SelectState {
  std::uint32_t prefix;
  std::int32_t wanted;
};

// Memory of a selection.
struct SelectRoom {
  std::int32_t* counts;  // [n][segment][part][kDigits]
  std::int32_t* totals;  // [n][segment][kDigits]
  SelectState* state;    // [n][segment]
  std::int32_t* picked;  // [n][segment][part][2]: greater keys, and equal ones
};

// Thread = part of a segment.
struct CountDigits {
  const std::uint32_t* keys;  // [n][segments.keys]
  Segments segments;
  SelectRoom room;
  std::int64_t n;
  std::int32_t shift;  // of the digit: 24, 16, 8, 0
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.count * segments.parts; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const Segments::Part part = segments.part_of(i);
    std::int32_t* const counts = room.counts + i * kDigits;
    for (std::int32_t digit = 0; digit < kDigits; ++digit) counts[digit] = 0;
    const bool is_first = shift + kDigitBits == 32;
    const std::uint32_t prefix = is_first ? 0 : room.state[i / segments.parts].prefix >> (shift + kDigitBits);
    const std::uint32_t* const of = keys + part.sample * segments.keys;
    for (std::int32_t item = part.first; item < part.end; ++item) {
      if (is_first || of[item] >> (shift + kDigitBits) == prefix) ++counts[of[item] >> shift & (kDigits - 1)];
    }
  }
};

// Thread = segment and digit.
struct SumDigits {
  Segments segments;
  SelectRoom room;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.count * kDigits; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t row = i / kDigits, digit = i % kDigits;
    constexpr std::int32_t kAtOnce = 16;
    const std::int32_t* const of = room.counts + row * segments.parts * kDigits + digit;
    std::int32_t sum = 0;
    for (std::int32_t first = 0; first < segments.parts; first += kAtOnce) {
      std::int32_t some[kAtOnce];
      DTRAIN_UNROLL
      for (int k = 0; k < kAtOnce; ++k)
        some[k] = first + k < segments.parts ? of[std::int64_t{first + k} * kDigits] : 0;
      DTRAIN_UNROLL
      for (int k = 0; k < kAtOnce; ++k) sum += some[k];
    }
    room.totals[i] = sum;
  }
};

// Thread = segment.
struct PickDigit {
  Segments segments;
  SelectRoom room;
  std::int64_t n;
  std::int32_t shift;
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.count; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const bool is_first = shift + kDigitBits == 32;
    SelectState state = is_first ? SelectState{0, segments.of[i % segments.count].take} : room.state[i];
    constexpr std::int32_t kAtOnce = 16;
    std::int32_t digit = 0;
    for (std::int32_t last = kDigits - 1; last > 0 && digit == 0; last -= kAtOnce) {
      std::int32_t some[kAtOnce];
      DTRAIN_UNROLL
      for (int k = 0; k < kAtOnce; ++k) some[k] = room.totals[i * kDigits + last - k];
      DTRAIN_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const bool is_found = digit > 0 || some[k] >= state.wanted;
        if (is_found && digit == 0) digit = last - k;
        if (!is_found && last - k > 0) state.wanted -= some[k];
      }
    }
    room.state[i] = {state.prefix | static_cast<std::uint32_t>(digit) << shift, state.wanted};
  }
};

// Thread = part of a segment.
struct CountPicked {
  const std::uint32_t* keys;
  Segments segments;
  SelectRoom room;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.count * segments.parts; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const Segments::Part part = segments.part_of(i);
    const std::uint32_t smallest = room.state[i / segments.parts].prefix;
    std::int32_t greater = 0, equal = 0;
    for (std::int32_t item = part.first; item < part.end; ++item) {
      const std::uint32_t key = keys[part.sample * segments.keys + item];
      greater += key > smallest;
      equal += key == smallest && key > 0;
    }
    room.picked[2 * i] = greater;
    room.picked[2 * i + 1] = equal;
  }
};

// picks[n][segments.picks]: items, counted within the sample; -1 behind the last one of a segment. Thread = part of a
// segment.
struct PlacePicked {
  const std::uint32_t* keys;
  Segments segments;
  SelectRoom room;
  std::int32_t* picks;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * segments.count * segments.parts; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const Segments::Part part = segments.part_of(i);
    const Segment& segment = segments.of[part.segment];
    const SelectState state = room.state[i / segments.parts];
    std::int32_t greater = 0, equal = 0;
    for (std::int64_t before = i - part.part; before < i; ++before) {
      greater += room.picked[2 * before];
      equal += room.picked[2 * before + 1];
    }
    std::int32_t* const to = picks + part.sample * segments.picks + segment.place;
    std::int32_t place = greater + (equal < state.wanted ? equal : state.wanted);
    for (std::int32_t item = part.first; item < part.end; ++item) {
      const std::uint32_t key = keys[part.sample * segments.keys + item];
      const bool is_equal = key == state.prefix && key > 0;
      if (key > state.prefix || (is_equal && equal < state.wanted)) to[place++] = item;
      equal += is_equal;
    }
    if (part.part + 1 < segments.parts) return;
    for (; place < segment.take; ++place) to[place] = -1;
  }
};

// So that greater numbers have greater keys, none of them 0. What is no number counts as the least one.
DTRAIN_KERNEL inline std::uint32_t key_of(float value) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const auto bits = std::bit_cast<std::uint32_t>(value != value ? kLeast : value + 0.0f);  // one zero for both
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

}  // namespace dtrain::backend::cuda
