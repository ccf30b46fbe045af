#include <dtrain/base/growing_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>

namespace dtrain {
namespace {

[[noreturn]] void fail(std::string_view action, const Path& path, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  const std::string hint = is_full ? "free some space there" : hint_without_descriptors(error);
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)), hint);
}

}  // namespace

GrowingFile::GrowingFile(Path path, unsigned permissions) : path_(std::move(path)), permissions_(permissions) {
  open();
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file_.get(), &last, 1, size - 1) != 1) fail("read", path_, errno);
  ends_within_a_line_ = last != '\n';
}

// Blocks beyond the end of the file are given back by cutting it where it ends.
GrowingFile::~GrowingFile() {
  if (!file_ || reserved_to_ == 0) return;
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  if (size >= 0) [[maybe_unused]]
    const int result = ::ftruncate(file_.get(), size);
}

void GrowingFile::reserve(std::uint64_t bytes) {
  reserve_ = bytes;
  reserve_ahead();
}

// Where the disk is full or the file system cannot, there is no reserve, and append() keeps in memory what it must.
void GrowingFile::reserve_ahead() {
  const off_t end = file_ && reserve_ > 0 ? ::lseek(file_.get(), 0, SEEK_END) : -1;
  if (end < 0 || static_cast<std::uint64_t>(end) + reserve_ / 2 < reserved_to_) return;
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, end, static_cast<off_t>(reserve_)) != 0) return;
  reserved_to_ = static_cast<std::uint64_t>(end) + reserve_;
}

void GrowingFile::open() {
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, permissions_));
  if (!file_) fail("open", path_, errno);
}

void GrowingFile::append(std::string_view text, bool sync) {
  sync_owed_ |= sync;
  if (kept_.size() + text.size() <= kKept) kept_ += text;
  catch_up();
}

// After a failure it is opened anew: a descriptor of a file server that was away may stay dead.
void GrowingFile::catch_up() {
  if (!file_) open();
  const std::size_t done = write_all(file_, bytes_of(kept_));
  const int error = done < kept_.size() ? errno : 0;
  kept_.erase(0, done);
  if (error != 0) {
    file_ = FileDescriptor();
    fail("write", path_, error);
  }
  reserve_ahead();
  if (sync_owed_) sync();
}

void GrowingFile::sync() {
  if (::fdatasync(file_.get()) != 0 && errno != EINVAL) fail("sync", path_, errno);
  sync_owed_ = false;
}

}  // namespace dtrain
