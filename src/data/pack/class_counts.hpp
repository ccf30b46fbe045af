// How many pictures of each class or of several labels, and objects where they have boxes, the packed files hold; and
// classes that a split of them lacks.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// Zeros for the classes of the list.
void begin_counts(const PackList& list, PackResult& result);

// Of pictures with one label that the files hold, by their splits.
struct PackedLabels {
  std::set<float> trained, others;
};
// Adds those items that are no problem. Both are of one record file.
void count_packed(std::span<const PackItem> items, const std::vector<PackProblem>& problems, PackResult& result,
                  PackedLabels& labels);
// Once all is packed: how many classes train, and which ones a split lacks.
void name_lacking_classes(const PackList& list, const PackedLabels& labels, PackResult& result);

}  // namespace dtrain::data
