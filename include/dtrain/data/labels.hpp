// The classes of records, without their pictures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/data/record.hpp>

namespace dtrain::data {

inline constexpr std::int32_t kUnknownLabel = -1;

// The labels of the first `count` records, read on all processors; kUnknownLabel for records that cannot be read.
// Throws DataError naming the first of those where they are more than max_bad_records, or all, and naming a record with
// a label outside [0, classes).
std::vector<std::int32_t> read_labels(const RecordSet& set, std::uint32_t count, int classes,
                                      std::int64_t max_bad_records = 0);

// The same as the loader gives them, as far as that shows without decoding pictures: a record that cannot be read has
// the label of the next good one, round the end, which comes in its place. A record that is read but whose picture
// cannot be decoded has its own label here, though the loader puts the next good record in its place: a class with
// many of these gets that much less of an order that is balanced by these labels.
std::vector<std::int32_t> labels_of_samples(const RecordSet& set, std::uint32_t count, int classes,
                                            std::int64_t max_bad_records);

// How many of the labels are each class; unknown ones count for none.
std::vector<std::uint32_t> class_counts(std::span<const std::int32_t> labels, int classes);

}  // namespace dtrain::data
