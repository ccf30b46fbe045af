#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// As find_records(), for a run of `data pack` that makes the set `made` of these records: it may go on with a run that
// was interrupted, so files of `made` need not be finished.
std::vector<Path> find_records_to_pack(const std::string& spec, const Path& made);

}  // namespace dtrain::data
