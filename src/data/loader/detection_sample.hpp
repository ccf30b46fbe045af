// A picture with its objects as a detector's input.
#pragma once

#include <dtrain/base/error.hpp>

#include "sample_reader.hpp"

namespace dtrain::data {

// A record that is whole and of no use for this network: no other one is taken in its place.
class UnfitRecord : public DataError {
 public:
  using DataError::DataError;
};

// Throws UsageError for options that would move or cut boxes.
void check_detection(const LoaderOptions& options);

// Fills out.image and out.objects. `picture`: that of the record, decoded. `place` is for messages. Throws UnfitRecord
// for a record without boxes, an object of no known class and one without the mask that is asked for; other DataErrors
// for damage.
void read_detection(const Record& record, const Image& picture, const std::string& place, const LoaderOptions& options,
                    const SampleKey& key, const SampleSlot& out);

// Whether the record is of the kind that the options ask for, with boxes or without.
inline bool is_of_kind(const Record& record, const LoaderOptions& options) {
  return has_boxes(record.labels) == options.detection.has_value();
}
[[noreturn]] void refuse_kind(const std::string& place, const LoaderOptions& options);

}  // namespace dtrain::data
