#include "partial_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::net {

PartialFile::PartialFile(const Path& to, std::string url)
    : target_(download_target(to)),
      part_(download_part(target_.path)),
      from_(download_source(target_.path)),
      url_(std::move(url)) {
  fd_ = open_download_part(target_);
  const off_t size = ::lseek(fd_.get(), 0, SEEK_END);
  if (size < 0) fail_download("read", part_);
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
  if (::ftruncate(fd_.get(), static_cast<off_t>(offset)) != 0) fail_download("cut", part_);
  size_ = offset;
  validator_ = validator;
  write_file_atomic(from_, fmt::format("{}\n{}\n", stored_url(url_), validator));
}

void PartialFile::write(ByteView bytes) {
  const std::size_t written = write_all_at(fd_, size_, bytes);
  size_ += written;
  if (written != bytes.size()) fail_download("write", part_);
}

void PartialFile::remove() {
  if (::ftruncate(fd_.get(), 0) != 0) fail_download("empty", part_);
  size_ = 0;
  validator_.clear();
}

void PartialFile::complete() {
  complete_download(fd_, target_);
  fd_ = FileDescriptor();
}

}  // namespace dtrain::net
