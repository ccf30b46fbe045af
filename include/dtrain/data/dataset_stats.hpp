// Statistics of record files, by which users choose options.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <dtrain/data/record.hpp>

namespace dtrain::data {

struct DatasetStats {
  std::size_t records = 0;
  std::uint64_t payload_bytes = 0;
  std::map<std::int64_t, std::size_t> classes;   // records by their only label, where it is a whole number
  std::map<double, std::size_t> other_labels;    // the same where it is none; not counted where it is no number
  std::map<std::string, std::size_t> encodings;  // "unknown" where no decoder takes the payload
  // These describe records with boxes, all of them.
  struct Objects {
    std::size_t records = 0, without = 0;  // that have boxes, and those of them that show none
    std::size_t boxes = 0, crowds = 0, masks = 0;
    std::size_t most = 0;                          // in one record
    std::size_t sized = 0;                         // records that say the areas of their objects; the next are of them
    std::size_t small = 0, medium = 0, large = 0;  // by COCO's areas, below 32^2, to 96^2 and above
    std::map<std::int64_t, std::size_t> classes;   // boxes that are no crowds
  } objects;
  // These describe the images that were decoded.
  std::size_t decoded = 0, undecodable = 0;
  int first_c = 0, first_h = 0, first_w = 0;  // of the first image that can be decoded; 0: none can
  int min_h = 0, max_h = 0, min_w = 0, max_w = 0;
  double mean_h = 0, mean_w = 0;
  std::array<double, 3> mean{}, std{};  // of R, G, B over all their pixels, in 0 to 255; grey counts as three
};

// Reads every record's header and decodes `sample` of them, spread evenly (0: all), on as many threads as there are
// processors. Damaged frames throw DataError, undecodable pictures are counted.
DatasetStats read_dataset_stats(const RecordSet& set, std::size_t sample);

// The median length in pixels of the shorter edges of a few pictures, spread evenly over the set. nullopt: none of them
// can be read.
std::optional<int> typical_shorter_edge(const RecordSet& set);

}  // namespace dtrain::data
