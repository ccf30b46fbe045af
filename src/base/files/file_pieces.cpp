#include <dtrain/base/file_pieces.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

[[noreturn]] void cannot(std::string_view action, const Path& path, int error) {
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              error == EACCES ? "its owner can let you read it: chmod, also of the folders above it" : "");
}

}  // namespace

FilePieces::FilePieces(Path path, std::size_t most)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (!file_) cannot("open", path_, errno);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) cannot("read", path_, errno);
  if (S_ISDIR(status.st_mode)) cannot("read", path_, EISDIR);
  size_ = static_cast<std::uint64_t>(status.st_size);
  piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size_, most)));
}

std::string_view FilePieces::next() {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), size_ - at_));
  const std::size_t have = read_all_at(file_, at_, std::as_writable_bytes(std::span(piece_).first(wanted)));
  if (have < wanted && errno != 0) cannot("read", path_, errno);
  if (have < wanted) {
    throw Error(fmt::format("{}: became shorter while it was copied: {} bytes in place of {}", path_.string(),
                            at_ + have, size_),
                "run it again once no program writes to this file");
  }
  at_ += have;
  return std::string_view(piece_).substr(0, have);
}

}  // namespace dtrain
