// The files of the page, which stand in src/board/page and are part of this program.
#pragma once

#include <span>
#include <string_view>

namespace dtrain::board {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view type;  // as a Content-Type
  std::string_view text;
};

std::span<const PageFile> page_files();

}  // namespace dtrain::board
