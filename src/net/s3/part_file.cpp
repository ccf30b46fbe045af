#include "part_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::net {
namespace {

// One sync serves so many bytes: it would slow small parts down. A killed process loses no more than this, beside the
// parts that were on their way.
constexpr std::uint64_t kBytesASync = 128u << 20;

}  // namespace

PartFile::PartFile(const Path& to, const std::string& url, const ObjectState& state, std::uint64_t part_size)
    : target_(download_target(to)),
      part_(download_part(target_.path)),
      from_(download_source(target_.path)),
      size_(state.size),
      part_size_(part_size) {
  fd_ = open_download_part(target_);
  take_over(fmt::format("{}\n{}\n{}\n{}\n", stored_url(url), state.etag, size_, part_size_));
  reserve();
}

PartFile::~PartFile() {
  try {
    mark(take_unmarked());
  } catch (const Error&) {
    // the next try fetches them again
  }
}

// A file that the user removed is made anew, empty: the marks are those of the file before.
bool PartFile::has_whole_size() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail_download("read", part_);
  return static_cast<std::uint64_t>(status.st_size) == size_;
}

// The text says of which object the parts are; one byte follows for each part, '1' once it has come.
void PartFile::take_over(const std::string& about) {
  const std::size_t parts = (size_ + part_size_ - 1) / part_size_;
  const std::string left = std::filesystem::exists(from_) ? read_file(from_) : std::string();
  const bool same = left.starts_with(about) && left.size() == about.size() + parts && has_whole_size();
  const std::string marks = same ? left.substr(about.size()) : std::string(parts, '0');
  if (!same) write_file_atomic(from_, about + marks);
  if (!same && ::ftruncate(fd_.get(), 0) != 0) fail_download("empty", part_);
  from_fd_ = FileDescriptor(::open(from_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!from_fd_) fail_download("create", from_);
  header_ = about.size();
  for (std::size_t number = 0; number < parts; ++number) {
    if (marks[number] != '1') missing_.push_back(number);
  }
}

// Where the file system reserves nothing (NFS before 4.2, FUSE), its word about the room that is left has to do:
// posix_fallocate() would write all of it there.
void PartFile::reserve() {
  if (size_ == 0) return;
  const auto size = static_cast<off_t>(size_);
  int error = ::fallocate(fd_.get(), 0, 0, size) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP || error == ENOSYS) {
    error = has_room() ? 0 : ENOSPC;
    if (error == 0 && ::ftruncate(fd_.get(), size) != 0) error = errno;
  }
  if (error != 0) fail_download(fmt::format("reserve {} bytes", size_), part_, error);
}

bool PartFile::has_room() const {
  struct stat file {};
  struct statvfs disk {};
  if (::fstat(fd_.get(), &file) != 0 || ::fstatvfs(fd_.get(), &disk) != 0) fail_download("read", part_);
  const std::uint64_t there = static_cast<std::uint64_t>(file.st_blocks) * S_BLKSIZE;
  const bool says_it = disk.f_blocks > 0;  // some in user space do not
  return !says_it || disk.f_bavail * disk.f_frsize + there >= size_;
}

std::uint64_t PartFile::size_of(std::size_t number) const { return std::min(part_size_, size_ - number * part_size_); }

void PartFile::write(std::uint64_t offset, ByteView bytes) {
  if (write_all_at(fd_, offset, bytes) != bytes.size()) fail_download("write", part_);
}

// The disk begins with it now, so that no sync waits for many parts at once.
void PartFile::has_come(std::size_t number) {
  const auto begin = static_cast<off_t>(begin_of(number)), size = static_cast<off_t>(size_of(number));
  ::sync_file_range(fd_.get(), begin, size, SYNC_FILE_RANGE_WRITE);
  {
    const MutexLock lock(mutex_);
    unmarked_.push_back(number);
    if (unmarked_.size() * part_size_ < kBytesASync) return;
  }
  mark(take_unmarked());
}

std::vector<std::size_t> PartFile::take_unmarked() {
  const MutexLock lock(mutex_);
  return std::exchange(unmarked_, {});
}

void PartFile::mark(const std::vector<std::size_t>& parts) {
  if (parts.empty()) return;
  if (::fdatasync(fd_.get()) != 0) fail_download("write to disk", part_);
  for (const std::size_t number : parts) {
    if (write_all_at(from_fd_, header_ + number, bytes_of("1")) != 1) fail_download("write", from_);
  }
}

void PartFile::drop() {
  take_unmarked();
  ::unlink(from_.c_str());
  ::unlink(part_.c_str());
}

void PartFile::complete() {
  take_unmarked();
  complete_download(fd_, target_);
}

}  // namespace dtrain::net
