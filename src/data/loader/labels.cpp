#include <dtrain/data/labels.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>

#include "sample_reader.hpp"

namespace dtrain::data {
namespace {

std::int32_t label_or_unknown(const RecordSet& set, std::size_t position, int classes, Record& record) {
  try {
    set.read(position, record);
  } catch (const DataError&) {
    return kUnknownLabel;
  }
  return checked_label(set, static_cast<std::uint32_t>(position), record.labels, classes);
}

void require_enough_good(const RecordSet& set, std::span<const std::int32_t> labels, std::int64_t max_bad_records) {
  const auto bad = std::ranges::count(labels, kUnknownLabel);
  if (bad == 0 || (bad <= max_bad_records && bad < std::ssize(labels))) return;
  Record record;
  try {
    set.read(static_cast<std::size_t>(std::ranges::find(labels, kUnknownLabel) - labels.begin()), record);
  } catch (const DataError& first) {
    throw DataError(
        fmt::format("{} records cannot be read, more than setting 'max-bad-records' {} or all; the first: {}", bad,
                    max_bad_records, first.what()),
        fmt::format("dtrain data verify {} lists them; setting 'max-bad-records' N trains without up to N of "
                    "them",
                    shown_path(set.files().front().path()).string()));
  }
}

}  // namespace

std::vector<std::int32_t> read_labels(const RecordSet& set, std::uint32_t count, int classes,
                                      std::int64_t max_bad_records) {
  constexpr std::size_t kAtOnce = 1024;
  std::vector<std::int32_t> labels(count);
  for_each_in_parallel((count + kAtOnce - 1) / kAtOnce, [&](std::size_t block) {
    Record record;
    for (std::size_t i = block * kAtOnce; i < std::min<std::size_t>(count, (block + 1) * kAtOnce); ++i) {
      labels[i] = label_or_unknown(set, i, classes, record);
    }
  });
  require_enough_good(set, labels, max_bad_records);
  return labels;
}

std::vector<std::int32_t> labels_of_samples(const RecordSet& set, std::uint32_t count, int classes,
                                            std::int64_t max_bad_records) {
  std::vector<std::int32_t> labels = read_labels(set, count, classes, max_bad_records);
  const auto known = std::ranges::find_if(labels, [](std::int32_t label) { return label != kUnknownLabel; });
  DTRAIN_CHECK(known != labels.end(), "a record replaces the others");
  std::int32_t next = *known;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    if (*label == kUnknownLabel) *label = next;
    next = *label;
  }
  return labels;
}

std::vector<std::uint32_t> class_counts(std::span<const std::int32_t> labels, int classes) {
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) {
    if (label != kUnknownLabel) ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

}  // namespace dtrain::data
