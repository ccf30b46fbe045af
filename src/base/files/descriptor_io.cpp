#include <dtrain/base/descriptor_io.hpp>

#include <unistd.h>

#include <cerrno>

namespace dtrain {
namespace {

// `move` moves what it can of so many bytes after the first `done` ones. `at_nothing` is the reason where it moves
// nothing and names none.
template <typename Move>
std::size_t move_all(std::size_t size, int at_nothing, const Move& move) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t moved = move(done, size - done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = at_nothing;
    if (moved <= 0) break;
    done += static_cast<std::size_t>(moved);
  }
  return done;
}

}  // namespace

std::size_t write_all(const FileDescriptor& file, ByteView bytes) {
  return move_all(bytes.size(), ENOSPC,
                  [&](std::size_t done, std::size_t left) { return ::write(file.get(), bytes.data() + done, left); });
}

std::size_t write_all_at(const FileDescriptor& file, std::uint64_t offset, ByteView bytes) {
  return move_all(bytes.size(), ENOSPC, [&](std::size_t done, std::size_t left) {
    return ::pwrite(file.get(), bytes.data() + done, left, static_cast<off_t>(offset + done));
  });
}

std::size_t read_all_at(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> into) {
  return move_all(into.size(), 0, [&](std::size_t done, std::size_t left) {
    return ::pread(file.get(), into.data() + done, left, static_cast<off_t>(offset + done));
  });
}

}  // namespace dtrain
