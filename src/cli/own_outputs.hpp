// Pictures and tables that commands write: without being asked they replace what dtrain wrote before, and nothing else.
#pragma once

#include <initializer_list>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::cli {

// Throws UsageError where the name has none of these endings, such as ".png", which choose the format.
void require_ending(std::string_view option, const Path& file, std::initializer_list<std::string_view> endings);

// Throw UsageError where the file is there, not empty and not dtrain's: no PNG or SVG that it drew, or a table whose
// first line begins with none of `heads`.
void refuse_to_replace_picture(std::string_view option, const Path& file);
void refuse_to_replace_table(std::string_view option, const Path& file, std::initializer_list<std::string_view> heads);

}  // namespace dtrain::cli
