#include "class_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <dtrain/data/objects.hpp>

namespace dtrain::data {
namespace {

void count_boxes(const PackItem& item, PackResult& result) {
  for (const std::int32_t label : box_classes(item.labels)) {
    if (label < std::ssize(result.class_objects)) ++result.class_objects[static_cast<std::size_t>(label)];
  }
}

void count_item(const PackItem& item, PackResult& result) {
  if (has_boxes(item.labels)) return count_boxes(item, result);
  if (item.labels.size() > 1) ++result.several_labels;
  if (item.labels.size() != 1) return;
  const float label = item.labels.front();
  if (label >= 0 && label < static_cast<float>(result.classes.size()))
    ++result.class_pictures[static_cast<std::size_t>(label)];
}

// Of one split, or of the others.
std::set<float> labels_where(const PackList& list, bool trains) {
  std::set<float> labels;
  for (const PackItem& item : list.items) {
    if (item.labels.size() == 1 && (item.split == PackSplit::train) == trains) labels.insert(item.labels.front());
  }
  return labels;
}

}  // namespace

std::vector<std::string> classes_without_training(const PackList& list) {
  std::vector<std::string> untrained;
  if (!list.is_split) return untrained;
  const std::set<float> trained = labels_where(list, true);
  for (std::size_t label = 0; label < list.classes.size(); ++label) {
    if (!trained.contains(static_cast<float>(label))) untrained.push_back(list.classes[label]);
  }
  return untrained;
}

std::vector<std::string> classes_of_training_alone(const PackList& list) {
  std::vector<std::string> alone;
  const std::set<float> others = labels_where(list, false);
  for (const float label : labels_where(list, true)) {
    const bool has_name = label >= 0 && label < static_cast<float>(list.classes.size());
    if (others.contains(label)) continue;
    alone.push_back(has_name ? list.classes[static_cast<std::size_t>(label)] : fmt::format("{:g}", label));
  }
  return alone;
}

void begin_counts(const PackList& list, PackResult& result) {
  result.class_pictures.assign(list.classes.size(), 0);
  const bool boxes = std::ranges::any_of(list.items, [](const PackItem& item) { return has_boxes(item.labels); });
  if (boxes) result.class_objects.assign(list.classes.size(), 0);
}

// By names, which are all that the journal keeps of the pictures that an earlier run could not read.
void count_packed(std::span<const PackItem> items, const std::vector<PackProblem>& problems, PackResult& result) {
  std::map<std::string_view, std::size_t> left_out;
  for (const PackProblem& problem : problems) ++left_out[problem.file];
  for (const PackItem& item : items) {
    const auto found = left_out.find(item.file);
    if (found == left_out.end() || found->second == 0) {
      count_item(item, result);
    } else {
      --found->second;
    }
  }
}

}  // namespace dtrain::data
