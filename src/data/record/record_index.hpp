// Where the records of a .rec file begin: read from its .idx, or found by walking the frames.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "record_format.hpp"

namespace dtrain::data {

// One line of an .idx file, with its end.
std::string index_line(std::uint64_t id, std::uint64_t offset);
// Lines "id<TAB>offset", in the order of the lines. Throws DataError naming the first bad line.
std::vector<std::uint64_t> parse_index(std::string_view text, const Path& idx);
// Throws DataError unless the offsets can belong to the file `rec` of `size` bytes: the lowest is 0, all are multiples
// of 4, and the record at the highest ends where the file does. Asks end_of(offset) for that one record only, so
// opening stays fast.
void check_index_fits(const std::vector<std::uint64_t>& offsets, const Path& idx, const Path& rec, std::uint64_t size,
                      const std::function<std::uint64_t(std::uint64_t)>& end_of);
std::vector<std::uint64_t> scan_records(const RecordBytes& file);

}  // namespace dtrain::data
