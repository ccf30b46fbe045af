#include "doubles.hpp"

#include <algorithm>

#include "boxes.hpp"

namespace dtrain::backend {

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.origin != b.origin ? a.origin < b.origin : a.label < b.label;
}

std::vector<Candidate> without_doubles(const std::vector<Candidate>& all, float threshold, int most) {
  std::vector<Candidate> kept;
  for (const Candidate& each : all) {
    if (std::ssize(kept) == most) break;
    const bool doubled = std::ranges::any_of(kept, [&](const Candidate& better) {
      return better.label == each.label && overlap_of(better.box, each.box) > threshold;
    });
    if (!doubled) kept.push_back(each);
  }
  return kept;
}

}  // namespace dtrain::backend
