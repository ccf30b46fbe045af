#include "shard_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/open_locked.hpp>
#include <dtrain/base/still_named.hpp>
#include <dtrain/data/image.hpp>

#include "record_format.hpp"
#include "record_index.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kBufferSize = 4 << 20;
// Beyond this many bytes all is on disk: after a power cut only so many have to be doubted.
constexpr std::uint64_t kSyncEvery = 64 << 20;

[[noreturn]] void fail(std::string_view action, const Path& path) {
  throw Error(
      fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(errno)),
      errno == ENOSPC || errno == EDQUOT ? "free some space there; the same command goes on where it stopped" : "");
}

Path part_path(const Path& rec) { return rec.string() + ".part"; }

// Without O_CREAT in `flags`, no descriptor where there is no such file.
FileDescriptor open_part(const Path& part, int flags) {
  const bool creates = (flags & O_CREAT) != 0;
  FileDescriptor fd = open_locked(part, flags);
  if (fd || (errno == ENOENT && !creates)) return fd;
  if (errno != EWOULDBLOCK) fail(creates ? "create" : "open", part);
  throw Error(fmt::format("{}: another process writes it", part.string()),
              "wait for it, or choose another setting 'out'");
}

bool are_different(std::vector<std::uint64_t> ids) {
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

bool decodes(const Record& record) try {
  Image image;
  decode_image(record.payload, kStoredChannels, image);
  return true;
} catch (const DataError&) {
  return false;
}

}  // namespace

// It is emptied in its place, under its lock: a process that opened it before would go on with a removed file.
void discard_part(const Path& rec) {
  const Path part = part_path(rec);
  const FileDescriptor fd = open_part(part, 0);
  if (!fd) return;
  if (::ftruncate(fd.get(), 0) != 0 || ::fsync(fd.get()) != 0) fail("shorten", part);
}

// A process that opens it meanwhile sees under its lock that it has lost its name, and opens it again.
void remove_part(const Path& rec) {
  const Path part = part_path(rec);
  const FileDescriptor fd(::open(part.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !is_still_named(fd, part)) return;
  if (::unlink(part.c_str()) != 0) fail("remove", part);
}

ShardFile::ShardFile(const Path& rec, const std::vector<std::uint64_t>& ids, bool take_up)
    : rec_(rec), part_(part_path(rec)), ids_(ids) {
  fd_ = open_part(part_, O_CREAT);
  if (take_up && are_different(ids)) keep_good_records();
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) fail("shorten", part_);
  if (::lseek(fd_.get(), 0, SEEK_END) < 0) fail("write", part_);
}

void ShardFile::keep_good_records() {
  const MappedFile mapped(part_);
  const RecordBytes file{mapped.bytes(), part_};
  const std::uint64_t whole = mapped.bytes().size(), doubtful = whole > 2 * kSyncEvery ? whole - 2 * kSyncEvery : 0;
  std::size_t next = 0;
  Record record;
  try {
    while (size_ < whole) {
      record_at(file, size_, record);
      const auto found = std::find(ids_.begin() + static_cast<std::ptrdiff_t>(next), ids_.end(), record.id);
      if (found == ids_.end() || (size_ >= doubtful && !decodes(record))) return;
      positions_.push_back(static_cast<std::size_t>(found - ids_.begin()));
      offsets_.push_back(size_);
      next = positions_.back() + 1;
      size_ = record_end(file, size_);
    }
  } catch (const RecordError&) {
    return;  // the record that was being written
  }
}

void ShardFile::add(std::size_t position, std::string_view framed) {
  positions_.push_back(position);
  offsets_.push_back(size_);
  buffer_ += framed;
  size_ += framed.size();
  if (buffer_.size() >= kBufferSize) flush();
  if (size_ - synced_ < kSyncEvery) return;
  flush();
  if (::fdatasync(fd_.get()) != 0) fail("write to disk", part_);
  synced_ = size_;
}

void ShardFile::flush() {
  if (write_all(fd_, bytes_of(buffer_)) != buffer_.size()) fail("write", part_);
  buffer_.clear();
}

void ShardFile::discard() { ::unlink(part_.c_str()); }

void ShardFile::finish() {
  flush();
  if (::fsync(fd_.get()) != 0) fail("write to disk", part_);
  std::string index;
  for (std::size_t i = 0; i < offsets_.size(); ++i) index += index_line(ids_[positions_[i]], offsets_[i]);
  // An old index beside the new records would be wrong, none is not.
  std::error_code ignored;
  std::filesystem::remove(index_path(rec_), ignored);
  if (::rename(part_.c_str(), rec_.c_str()) != 0) fail("rename", part_);
  write_file_atomic(index_path(rec_), index);  // syncs the folder too
}

}  // namespace dtrain::data
