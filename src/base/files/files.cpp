#include <dtrain/base/files.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>

#include "mapping_faults.hpp"

namespace dtrain {
namespace {

constexpr std::size_t kBufferSize = 1 << 20;

// What is done to files that are read.
constexpr std::string_view kOpen = "open", kRead = "read", kMap = "map", kList = "list";

[[noreturn]] void fail(std::string_view action, const Path& path, int error) {
  const std::string what = fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) throw DiskFull(what, "free some space there or choose another folder");
  std::string hint = hint_without_descriptors(error);
  if (error == EFBIG) hint = "the file system or a limit (ulimit -f) allows no larger file";
  const bool reads = action == kOpen || action == kRead || action == kMap || action == kList;
  if (error == EROFS || (error == EACCES && !reads)) hint = "choose a folder that you may write to";
  if (error == EACCES && reads) hint = "its owner can let you read it: chmod, also of the folders above it";
  if (error == ENOTDIR) hint = "a part of this path is a file, not a folder; choose another path";
  throw Error(what, hint);
}

Path folder_of(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

// Whether the path itself says that it is a stream or a device, such as /dev/stdin, or /dev/fd/63 of the shell's
// <(...). Everybody may write to /dev/shm.
bool names_a_stream(const Path& path) {
  const Path name = path.lexically_normal(), folder = name.parent_path();
  return folder == "/dev" || folder == "/dev/fd" || name.string().starts_with("/proc/");
}

bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == ::makedev(1, 3);  // numbers that Linux has fixed
}

[[noreturn]] void refuse_kind(const Path& path, const struct stat& status) {
  throw Error(fmt::format("{}: is a {}, not a file", path.string(), S_ISFIFO(status.st_mode) ? "FIFO" : "device"),
              "name a regular file");
}

// Opening a FIFO would wait for its writer, perhaps for ever, and reading a terminal for its user. So both are read
// only where the path names them: a link with the name of a file may be another user's.
FileDescriptor open_for_reading(const Path& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // Another process, such as a file server, has a lease on the file: wait until the kernel took it back.
  if (!fd && errno == EWOULDBLOCK) fd = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) fail(kOpen, path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(kRead, path, errno);
  if (S_ISDIR(status.st_mode)) fail(kRead, path, EISDIR);
  if (S_ISREG(status.st_mode)) return fd;
  if (!names_a_stream(path) && !is_null_device(status)) refuse_kind(path, status);
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) fail(kOpen, path, errno);  // from here on a reader waits for bytes
  return fd;
}

constexpr std::uint64_t kLongestFile = std::uint64_t{4} << 30, kLongestStream = 64u << 20;

// A rename is only safe from power loss once its folder is on disk too.
void sync_folder(const Path& folder) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail("open the folder", folder, errno);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) fail("sync the folder", folder, errno);
}

}  // namespace

std::string read_file(const Path& path) { return read_file(open_for_reading(path), path); }

std::string read_file(const FileDescriptor& fd, const Path& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(kRead, path, errno);
  // A device such as /dev/zero may never end, and a file with holes is longer than the memory.
  const std::uint64_t most = S_ISREG(status.st_mode) ? kLongestFile : kLongestStream;
  std::string content;
  for (;;) {
    const std::size_t old_size = content.size();
    if (std::max<std::uint64_t>(old_size, static_cast<std::uint64_t>(status.st_size)) > most) {
      throw DataError(
          fmt::format("{}: holds more than the {} that are read of such a file", path.string(), format_bytes(most)),
          "is it the right file?");
    }
    content.resize(old_size + kBufferSize);
    const ssize_t got = ::read(fd.get(), content.data() + old_size, kBufferSize);
    content.resize(old_size + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(kRead, path, errno);
    if (got == 0) return content;
  }
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

MappedFile::MappedFile(const Path& path) {
  const FileDescriptor fd = open_for_reading(path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(kRead, path, errno);
  if (S_ISFIFO(status.st_mode)) refuse_kind(path, status);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) fail(kMap, path, errno);
  data_ = static_cast<const std::byte*>(mapped);
  watch_ = watch_mapping(bytes(), path);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      watch_(std::exchange(other.watch_, kNoMappingSlot)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(watch_, other.watch_);
  return *this;
}

MappedFile::~MappedFile() {
  forget_mapping(watch_);
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

AtomicFile::AtomicFile(Path path, unsigned permissions) : path_(std::move(path)) {
  struct stat there {};
  if (::stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {  // such as /dev/null, which root could replace
    throw UsageError(path_.string() + ": is no file", "name a file, which may be there already");
  }
  temporary_ = temporary_for(path_);
  fd_ = FileDescriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions));
  if (!fd_) fail("create", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (fd_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(ByteView bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() < kBufferSize) {
    buffer_ += text_of(bytes);
    return;
  }
  flush();
  if (write_all(fd_, bytes) != bytes.size()) fail("write", path_, errno);
}

void AtomicFile::write_at(std::uint64_t offset, ByteView bytes) {
  DTRAIN_CHECK(offset + bytes.size() <= size_, "write_at goes past the end");
  flush();
  if (write_all_at(fd_, offset, bytes) != bytes.size()) fail("write", path_, errno);
}

void AtomicFile::flush() {
  if (write_all(fd_, bytes_of(buffer_)) != buffer_.size()) fail("write", path_, errno);
  buffer_.clear();
}

void AtomicFile::keep_access() {
  struct stat there {};
  if (::stat(path_.c_str(), &there) != 0) return;
  // Only root gives a file away, and any user may give it to a group of their own.
  if (::fchown(fd_.get(), there.st_uid, there.st_gid) != 0)
    std::ignore = ::fchown(fd_.get(), static_cast<uid_t>(-1), there.st_gid);
  std::ignore = ::fchmod(fd_.get(), there.st_mode & 07777);  // file servers may refuse it, or have no modes
}

void AtomicFile::sync() {
  flush();
  if (::fsync(fd_.get()) != 0) fail("write to disk", path_, errno);
}

void AtomicFile::commit() {
  sync();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the new file to its name", path_, errno);
  fd_ = FileDescriptor();
  sync_folder(folder_of(path_));
}

void write_file_atomic(const Path& path, std::string_view content, unsigned permissions) {
  AtomicFile file(path, permissions);
  file.write(content);
  file.commit();
}

void rename_durably(const Path& from, const Path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(fmt::format("rename it to {}", to.string()), from, errno);
  sync_folder(folder_of(to));
}

// `unknown` says why the folder, which is there, cannot be read.
static bool is_listed(const Path& path, std::error_code& unknown) {
  for (std::filesystem::directory_iterator entry(folder_of(path), unknown), end; !unknown && entry != end;
       entry.increment(unknown)) {
    if (entry->path().filename() == path.filename()) return true;
  }
  if (unknown == std::errc::no_such_file_or_directory || unknown == std::errc::not_a_directory) unknown.clear();
  return false;
}

bool is_listed(const Path& path) {
  std::error_code ignored;
  return is_listed(path, ignored);
}

bool is_listed_or_throw(const Path& path) {
  std::error_code unknown;
  const bool is_there = is_listed(path, unknown);
  if (unknown) fail(kList, folder_of(path), unknown.value());
  return is_there;
}

void make_folder(const Path& path) {
  if (path.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail("make the folder", path, error.value());
}

Path temporary_folder() {
  const std::string named = environment("TMPDIR").value_or("");
  Path folder = named.empty() ? "/tmp" : named;
  std::error_code unreachable;
  if (std::filesystem::is_directory(folder, unreachable)) return folder;
  throw Error(fmt::format("{}{}: no such folder for temporary files", named.empty() ? "" : "TMPDIR ", folder.string()),
              "set TMPDIR to a folder that exists");
}

Path make_temporary_folder(std::string_view stem, const std::string& hint) {
  std::string name = (temporary_folder() / fmt::format("{}-XXXXXX", stem)).string();
  if (::mkdtemp(name.data())) return name;
  throw Error(fmt::format("{}: cannot make a folder: {}", name, std::strerror(errno)), hint);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dtrain
