// JSON documents that are too large to be held as values: their parts as text, one after another.
#pragma once

#include <functional>
#include <string_view>

namespace dtrain {

// Calls visit(name, value) for each member of the object, or visit(value) for each element of the array, with the text
// of the value, which Json::parse() takes. The text is only looked at as far as that needs: mistakes inside of a value
// are found by who parses it. Names are as they stand there, with their escapes. Throws DataError naming `source` and
// the byte of `text`.
void for_each_member(std::string_view text, std::string_view source,
                     const std::function<void(std::string_view name, std::string_view value)>& visit);
void for_each_element(std::string_view text, std::string_view source,
                      const std::function<void(std::string_view value)>& visit);

}  // namespace dtrain
