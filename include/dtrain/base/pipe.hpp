// Descriptors that a process hands to its children: pipes, texts in memory, log files. All close on exec, so that only
// the child gets them for whom spawn() places them. Every failure is an Error.
#pragma once

#include <cstddef>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

struct [[nodiscard]] Pipe {
  FileDescriptor read_end, write_end;
};
Pipe make_pipe();

// Bytes to read from a pipe at a time, and how many such reads empty the largest pipe (1 MiB) that a user without
// rights can make: a reader that ends needs no more of them, even while another process goes on writing.
inline constexpr std::size_t kPipeChunk = 64 << 10;
inline constexpr int kFullPipe = 16;
// Within so many milliseconds something can be read, the end included.
bool is_readable(const FileDescriptor& pipe, int wait_ms = 0);

// A file without a name that holds the text, of any size, and is read from its start. No other process can see it.
FileDescriptor memory_file(std::string_view text = {});

// Opens a log file for appending, and creates it if needed. A symbolic link is refused: who may write to the folder
// could have it lead to another file of this user.
FileDescriptor open_log(const Path& path, unsigned permissions = 0666);

// Blocks until a byte arrives (true) or the other end is closed (false).
bool wait_for_byte(const FileDescriptor& read_end);

}  // namespace dtrain
