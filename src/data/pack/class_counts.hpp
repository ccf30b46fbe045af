// How many pictures of each class or of several labels, and objects where they have boxes, the packed files hold; and
// classes that a split lacks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// Zeros for the classes of the list.
void begin_counts(const PackList& list, PackResult& result);
// Adds those items that are no problem. Both are of one record file.
void count_packed(std::span<const PackItem> items, const std::vector<PackProblem>& problems, PackResult& result);

// Of a source that is split by its folders, where validation may have classes of its own.
std::vector<std::string> classes_without_training(const PackList& list);
// Of a list that shares have split: classes that neither validate nor test.
std::vector<std::string> classes_of_training_alone(const PackList& list);

}  // namespace dtrain::data
