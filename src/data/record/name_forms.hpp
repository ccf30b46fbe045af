// Two forms of one name: Unicode writes é as one character, or as e and a combining mark. macOS keeps names of files in
// the second form, other systems as they were typed. The two look the same, and their bytes differ.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::data {

// Whether the names differ, and only by the form of Latin letters with marks, as far as their bytes show it without
// Unicode's tables: which mark a letter has is not compared.
bool are_forms_of_one_name(std::string_view a, std::string_view b);

// "caf\xc3\xa9": what is no ASCII byte by byte.
std::string escaped_bytes(std::string_view name);

}  // namespace dtrain::data
