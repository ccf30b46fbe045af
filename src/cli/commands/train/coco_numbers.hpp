// `dtrain predict --coco-results`: how COCO's annotations number pictures and classes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::cli {

struct CocoNumbers {
  std::map<Path, std::int64_t> pictures;                // of the given files that the annotations list
  std::vector<std::optional<std::int64_t>> categories;  // of each of the network's classes that they have
};

// `files` are found by their names and as many of their folders as the annotations and they have in common; `names` are
// the network's classes. Throws DataError for a file that may be several images, an image that may be several files,
// and a class that the annotations have twice.
CocoNumbers read_coco_numbers(const Path& annotations, const std::vector<Path>& files,
                              const std::vector<std::string>& names);

}  // namespace dtrain::cli
