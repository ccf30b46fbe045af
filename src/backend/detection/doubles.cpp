#include "doubles.hpp"

#include <algorithm>

#include "boxes.hpp"

namespace dtrain::backend {

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.origin != b.origin ? a.origin < b.origin : a.label < b.label;
}

void keep_best(std::vector<Candidate>& all, int most) {
  if (std::ssize(all) <= most) return;
  const auto end = all.begin() + most;
  std::nth_element(all.begin(), end, all.end(), is_better);
  all.erase(end, all.end());
}

namespace {

// Boxes with a column for each edge, so that a compiler compares one with several of them at once.
class Columns {
 public:
  void add(const Candidate& each) {
    left_.push_back(each.box.left);
    top_.push_back(each.box.top);
    right_.push_back(each.box.right);
    bottom_.push_back(each.box.bottom);
    area_.push_back(area_of(each.box));
    label_.push_back(each.label);
  }
  // Whether overlap_of() one of the same label is above the threshold.
  bool overlaps(const Candidate& each, float threshold) const {
    constexpr std::size_t kAtOnce = 64;
    for (std::size_t first = 0; first < label_.size(); first += kAtOnce) {
      if (overlaps(each, threshold, first, std::min(first + kAtOnce, label_.size()))) return true;
    }
    return false;
  }

 private:
  // Without a branch: boxes of no area give no number, which is above nothing.
  bool overlaps(const Candidate& each, float threshold, std::size_t first, std::size_t end) const {
    const nn::Box& box = each.box;
    const float area = area_of(box);
    int found = 0;
    for (std::size_t k = first; k < end; ++k) {
      const float width = std::max(0.0f, std::min(box.right, right_[k]) - std::max(box.left, left_[k]));
      const float height = std::max(0.0f, std::min(box.bottom, bottom_[k]) - std::max(box.top, top_[k]));
      const float both = width * height, either = area_[k] + area - both;
      found |= static_cast<int>(label_[k] == each.label) & static_cast<int>(both / either > threshold);
    }
    return found != 0;
  }

  std::vector<float> left_, top_, right_, bottom_, area_;
  std::vector<std::int32_t> label_;
};

}  // namespace

std::vector<Candidate> without_doubles(const std::vector<Candidate>& all, float threshold, int most) {
  std::vector<Candidate> kept;
  Columns better;
  for (const Candidate& each : all) {
    if (std::ssize(kept) == most) break;
    if (better.overlaps(each, threshold)) continue;
    kept.push_back(each);
    better.add(each);
  }
  return kept;
}

}  // namespace dtrain::backend
