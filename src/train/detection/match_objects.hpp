// The found objects of one picture and the true ones that they match, at each overlap and for each range of areas.
#pragma once

#include <dtrain/train/coco_ap.hpp>

namespace dtrain::train {

inline constexpr std::size_t kOverlaps = 10;  // 0.50, 0.55, ... 0.95
inline constexpr std::size_t kAreas = 4;      // all, small, medium, large
inline constexpr std::size_t kMostFound = 100;

constexpr std::uint64_t match_bit(std::size_t area, std::size_t overlap) {
  return std::uint64_t{1} << (area * kOverlaps + overlap);
}

struct MatchedObject {
  double score = 0;
  std::uint64_t picture = 0;
  std::uint32_t rank = 0;                  // by score, among those of its category in its picture
  std::uint64_t matched = 0, ignored = 0;  // match_bit()s; what is ignored is neither right nor wrong
};

struct CategoryMatches {
  std::int32_t category = 0;
  std::vector<MatchedObject> found;
  std::array<std::uint64_t, kAreas> truths{};  // that are not ignored
};
using PictureMatches = std::vector<CategoryMatches>;

PictureMatches match_picture(OverlapOf what, std::uint64_t picture, std::span<const TrueObject> truth,
                             std::span<const FoundObject> found);

}  // namespace dtrain::train
