// What the labels of record files mean: names by label, in the "classes" of PREFIX.pack.json beside the files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// The names for these files, as find_records() gives them. PREFIX is the first file's name without its ending, without
// the number of a shard and without _train or _val. Empty where there are none, also behind a URL.
std::vector<std::string> class_names(std::span<const Path> files);

// "3 dog", or "3" where there is no name.
std::string label_text(std::int64_t label, std::span<const std::string> names);

}  // namespace dtrain::data
