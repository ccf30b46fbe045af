#include "class_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include <dtrain/data/objects.hpp>

namespace dtrain::data {
namespace {

void count_boxes(const PackItem& item, PackResult& result) {
  for (const std::int32_t label : box_classes(item.labels)) {
    if (label < std::ssize(result.class_objects)) ++result.class_objects[static_cast<std::size_t>(label)];
  }
}

void count_item(const PackItem& item, PackResult& result, PackedLabels& labels) {
  if (has_boxes(item.labels)) return count_boxes(item, result);
  if (item.labels.size() > 1) ++result.several_labels;
  if (item.labels.size() != 1) return;
  const float label = item.labels.front();
  (item.split == PackSplit::train ? labels.trained : labels.others).insert(label);
  if (label >= 0 && label < static_cast<float>(result.classes.size()))
    ++result.class_pictures[static_cast<std::size_t>(label)];
}

// Also of those that could not be packed.
std::set<float> listed_labels(const PackList& list) {
  std::set<float> labels;
  for (const PackItem& item : list.items) {
    if (item.labels.size() == 1) labels.insert(item.labels.front());
  }
  return labels;
}

}  // namespace

// Some sources name classes of which they have no picture. These are no news.
void name_lacking_classes(const PackList& list, const PackedLabels& labels, PackResult& result) {
  const std::set<float> listed = listed_labels(list);
  for (std::size_t i = 0; i < list.classes.size(); ++i) {
    const auto label = static_cast<float>(i);
    if (labels.trained.contains(label)) {
      ++result.trained_classes;
    } else if (listed.contains(label)) {
      result.untrained.push_back(list.classes[i]);
    }
  }
  if (!result.shares) return;
  for (const float label : labels.trained) {
    const bool has_name = label >= 0 && label < static_cast<float>(list.classes.size());
    if (labels.others.contains(label)) continue;
    result.unvalidated.push_back(has_name ? list.classes[static_cast<std::size_t>(label)] : fmt::format("{:g}", label));
  }
}

void begin_counts(const PackList& list, PackResult& result) {
  result.class_pictures.assign(list.classes.size(), 0);
  const bool boxes = std::ranges::any_of(list.items, [](const PackItem& item) { return has_boxes(item.labels); });
  if (boxes) result.class_objects.assign(list.classes.size(), 0);
}

// By names, which are all that the journal keeps of the pictures that an earlier run could not read.
void count_packed(std::span<const PackItem> items, const std::vector<PackProblem>& problems, PackResult& result,
                  PackedLabels& labels) {
  std::map<std::string_view, std::size_t> left_out;
  for (const PackProblem& problem : problems) ++left_out[problem.file];
  for (const PackItem& item : items) {
    const auto found = left_out.find(item.file);
    if (found == left_out.end() || found->second == 0) {
      count_item(item, result, labels);
    } else {
      --found->second;
    }
  }
}

}  // namespace dtrain::data
