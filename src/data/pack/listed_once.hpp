// Pictures that several rows of a list or a table of labels name.
#pragma once

#include <string>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// Throws DataError where two rows give one picture different labels; `lines` are those of the items in `source`.
void refuse_different_labels(const std::string& source, const std::vector<std::size_t>& lines, const PackList& list);
// Keeps the first of the rows that name one picture; the others go to list.skipped.
void keep_first_rows(PackList& list);

}  // namespace dtrain::data
