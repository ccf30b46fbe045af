// Which pictures are padded to the same size, by what their records say before a picture is decoded.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/data/loader.hpp>

namespace dtrain::data {

// The pictures of the first `count` records in options.detection->groups.
struct PictureGroups {
  std::vector<std::uint8_t> of;      // each position
  std::vector<PictureGroup> groups;  // empty: LoaderOptions::in_groups() says no
};

// Reads the records on all processors. One that cannot be read is of the first group; next() reports it in its turn.
// Throws SettingError for a group without pictures, where options.shuffle.
PictureGroups group_pictures(const RecordSet& set, std::uint32_t count, const LoaderOptions& options);

}  // namespace dtrain::data
