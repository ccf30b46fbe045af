// Where the records of a .rec file begin: read from its .idx, or found by walking the frames.
#pragma once

#include <cstdint>
#include <vector>

#include "record_format.hpp"

namespace dtrain::data {

// Lines "id<TAB>offset", in the order of the lines. Throws DataError naming the first bad line.
std::vector<std::uint64_t> parse_index(std::string_view text, const Path& idx);
// Throws DataError unless the offsets can belong to the file: the lowest is 0, all are multiples of 4, and the record
// at the highest ends where the file does. Looks at that one record only, so opening stays fast.
void check_index_fits(const std::vector<std::uint64_t>& offsets, const RecordBytes& file, const Path& idx);
std::vector<std::uint64_t> scan_records(const RecordBytes& file);

}  // namespace dtrain::data
