// Names from elsewhere: which of them may become files here, and which are no part of the data.
#pragma once

#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// Whether the name, below some folder, stays below it: no "..", not absolute, not empty, no zero byte.
bool stays_inside(std::string_view name);
// Throws DataError unless it does.
void check_stays_inside(std::string_view name, std::string_view source);

// Whether a folder or a file of this name, without folders, is what other programs keep beside pictures:
// .ipynb_checkpoints of Jupyter, ._1.jpg and __MACOSX of macOS, thumbnails (@eaDir) and removed files (#recycle) of
// network drives, lost+found and "System Volume Information" of file systems, which only their owner can list.
bool is_of_other_programs(const Path& name);
// Whether a part of the path is.
bool is_hidden_path(const Path& path);

// Throws DataError for what a folder that is sent whole may not hold: a link to a folder or to nothing, a socket.
[[noreturn]] void refuse_to_send(const Path& path);

}  // namespace dtrain::data
