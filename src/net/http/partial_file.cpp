#include "partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/still_named.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::net {
namespace {

[[noreturn]] void fail(std::string_view action, const Path& path) {
  const int error = errno;
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              error == ENOSPC ? "free some space there or choose another folder" : "");
}

Path with_ending(Path path, const char* ending) { return path += ending; }

FileDescriptor open_locked(const Path& part, const Path& to) {
  for (;;) {
    FileDescriptor file(::open(part.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) fail("create", part);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw Error(fmt::format("{}: another process is downloading it", to.string()), "wait for it to end");
    }
    if (is_still_named(file, part)) return file;
  }
}

}  // namespace

PartialFile::PartialFile(Path to, std::string url)
    : to_(std::move(to)), part_(with_ending(to_, ".part")), from_(with_ending(part_, ".from")), url_(std::move(url)) {
  if (to_.has_parent_path()) make_folder(to_.parent_path());
  fd_ = open_locked(part_, to_);
  const off_t size = ::lseek(fd_.get(), 0, SEEK_END);
  if (size < 0) fail("read", part_);
  size_ = static_cast<std::uint64_t>(size);
  const std::vector<std::string> from = split(std::filesystem::exists(from_) ? read_file(from_) : std::string(), '\n');
  if (from.size() >= 2 && from[0] == stored_url(url_)) {
    validator_ = from[1];
  } else {
    remove();
  }
}

PartialFile::~PartialFile() {
  if (size_ > 0 || !fd_) return;
  ::unlink(part_.c_str());
  ::unlink(from_.c_str());
}

void PartialFile::begin_at(std::uint64_t offset, const std::string& validator) {
  if (offset != 0 && offset != size_) {
    throw RemoteError(fmt::format("{}: asked for byte {}, the server sent byte {}", shown_url(url_), size_, offset));
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(offset)) != 0) fail("cut", part_);
  size_ = offset;
  validator_ = validator;
  write_file_atomic(from_, fmt::format("{}\n{}\n", stored_url(url_), validator));
}

void PartialFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", part_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
}

void PartialFile::remove() {
  if (::ftruncate(fd_.get(), 0) != 0) fail("empty", part_);
  size_ = 0;
  validator_.clear();
}

void PartialFile::complete() {
  if (::fsync(fd_.get()) != 0) fail("write to disk", part_);
  if (::rename(part_.c_str(), to_.c_str()) != 0) fail("rename", part_);
  ::unlink(from_.c_str());
  fd_ = FileDescriptor();
}

}  // namespace dtrain::net
