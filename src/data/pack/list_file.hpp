// The .lst file beside records: "id<TAB>label...<TAB>file" in each line, as im2rec writes and reads.
#pragma once

#include <span>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// Throws DataError for a picture whose name would end a column or a line of the file.
void require_name_for_list(const PackItem& item);

// Lists those of the items whose positions are given.
void write_list(const Path& rec, std::span<const PackItem> items, const std::vector<std::size_t>& positions);

}  // namespace dtrain::data
