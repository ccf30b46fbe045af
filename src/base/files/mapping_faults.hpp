// A mapped file that is truncated, or whose disk or server fails, raises SIGBUS at the next access. The process then
// ends with a message that names the file, as it does when a read fails.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// No slot: the table is full, and a fault ends the process without a message.
inline constexpr int kNoMappingSlot = -1;

// From any thread. The first call installs the handler of SIGBUS; what it finds outside of the mappings it leaves to
// the handler before it, or to the default action.
int watch_mapping(ByteView mapped, const Path& path);
// Before munmap(). Takes kNoMappingSlot too.
void forget_mapping(int slot);

}  // namespace dtrain
