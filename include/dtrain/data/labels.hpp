// The classes of records, without their pictures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/data/record.hpp>

namespace dtrain::data {

// The labels that a loader gives the first `count` records, read on all processors. Throws DataError naming the record
// that cannot be read, or has a label outside [0, classes).
std::vector<std::int32_t> read_labels(const RecordSet& set, std::uint32_t count, int classes);

// How many of the labels are each class.
std::vector<std::uint32_t> class_counts(std::span<const std::int32_t> labels, int classes);

}  // namespace dtrain::data
