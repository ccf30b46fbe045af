#include <dtrain/data/labels.hpp>

#include <algorithm>

#include <dtrain/base/parallel.hpp>

#include "sample_reader.hpp"

namespace dtrain::data {

std::vector<std::int32_t> read_labels(const RecordSet& set, std::uint32_t count, int classes) {
  constexpr std::size_t kAtOnce = 1024;
  std::vector<std::int32_t> labels(count);
  for_each_in_parallel((count + kAtOnce - 1) / kAtOnce, [&](std::size_t block) {
    Record record;
    for (std::size_t i = block * kAtOnce; i < std::min<std::size_t>(count, (block + 1) * kAtOnce); ++i) {
      set.read(i, record);
      labels[i] = checked_label(set, static_cast<std::uint32_t>(i), record.labels, classes);
    }
  });
  return labels;
}

std::vector<std::uint32_t> class_counts(std::span<const std::int32_t> labels, int classes) {
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

}  // namespace dtrain::data
