// Where the records of a .rec file begin: read from its .idx, or found by walking the frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record_format.hpp"

namespace dtrain::data {

// One line of an .idx file, with its end.
std::string index_line(std::uint64_t id, std::uint64_t offset);
// Lines "id<TAB>offset", in the order of the lines. Throws DataError naming the first bad line.
std::vector<std::uint64_t> parse_index(std::string_view text, const Path& idx);
// Throws DataError unless the offsets can belong to the file: the lowest is 0, all are multiples of 4, and the record
// at the highest ends where the file does. Looks at that one record only, so opening stays fast and `file` may be the
// part that begins with it.
void check_index_fits(const std::vector<std::uint64_t>& offsets, const RecordBytes& file, const Path& idx);
std::vector<std::uint64_t> scan_records(const RecordBytes& file);

}  // namespace dtrain::data
