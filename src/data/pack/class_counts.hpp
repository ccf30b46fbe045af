// How many pictures of each class or of several labels, and objects where they have boxes, the packed files hold.
#pragma once

#include <span>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// Zeros for the classes of the list.
void begin_counts(const PackList& list, PackResult& result);
// Adds those items that are no problem. Both are of one record file.
void count_packed(std::span<const PackItem> items, const std::vector<PackProblem>& problems, PackResult& result);

}  // namespace dtrain::data
