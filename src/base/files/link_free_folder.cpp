#include <dtrain/base/link_free_folder.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

constexpr int kOnTheWay = O_PATH | O_DIRECTORY | O_CLOEXEC;

// A link where a folder or file should be counts as one that is not there; ENOTDIR and ELOOP are what open(2) says of
// it with O_NOFOLLOW.
bool is_nothing_to_show(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

[[noreturn]] void cannot_look(const std::string& path, int error) {
  throw Error(fmt::format("{}: cannot read: {}", path, std::strerror(error)));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

LinkFreeFolder::LinkFreeFolder(const Path& top) : top_(top.string()), start_(top_ == "/" ? top_ : top_ + "/") {}

bool LinkFreeFolder::has(const std::string& path) const { return path == top_ || path.starts_with(start_); }

// Folder by folder: a path that was looked at as a whole may lead elsewhere by the time it is opened.
std::optional<LinkFreeFolder::Place> LinkFreeFolder::reach(const std::string& path) const {
  if (!has(path)) return std::nullopt;
  Place place{FileDescriptor(::open(top_.c_str(), kOnTheWay)), "."};
  if (!place.folder) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    cannot_look(top_, errno);
  }
  if (path == top_) return place;
  for (const std::string& part : split(std::string_view(path).substr(start_.size()), '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return std::nullopt;
    const std::string before = std::exchange(place.name, part);
    if (before == ".") continue;
    FileDescriptor below(::openat(place.folder.get(), before.c_str(), kOnTheWay | O_NOFOLLOW));
    if (!below && !is_nothing_to_show(errno)) cannot_look(path, errno);
    if (!below) return std::nullopt;
    place.folder = std::move(below);
  }
  return place;
}

std::optional<struct stat> LinkFreeFolder::status(const std::string& path) const {
  const std::optional<Place> place = reach(path);
  if (!place) return std::nullopt;
  struct stat status {};
  if (::fstatat(place->folder.get(), place->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return S_ISREG(status.st_mode) ? std::optional(status) : std::nullopt;
  if (!is_nothing_to_show(errno)) cannot_look(path, errno);
  return std::nullopt;
}

// What stands there may be replaced between two calls, so that the kind of the opened file counts.
FileDescriptor LinkFreeFolder::open(const std::string& path) const {
  const std::optional<Place> place = reach(path);
  if (!place) return {};
  FileDescriptor file(
      ::openat(place->folder.get(), place->name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (file && ::fstat(file.get(), &status) == 0) return S_ISREG(status.st_mode) ? std::move(file) : FileDescriptor();
  const bool is_socket = errno == ENXIO;
  if (!is_nothing_to_show(errno) && !is_socket) cannot_look(path, errno);
  return {};
}

std::optional<std::string> LinkFreeFolder::read(const std::string& path, std::uint64_t from, std::uint64_t most) const {
  const FileDescriptor file = open(path);
  if (!file) return std::nullopt;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) cannot_look(path, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::string bytes(std::min(most, size - std::min(size, from)), '\0');
  const std::size_t got = read_all_at(file, from, std::as_writable_bytes(std::span(bytes)));
  if (got < bytes.size() && errno != 0) cannot_look(path, errno);
  bytes.resize(got);
  return bytes;
}

std::vector<ListedFile> LinkFreeFolder::list(const std::string& folder, std::size_t most) const {
  std::vector<ListedFile> files;
  const std::optional<Place> place = reach(folder);
  if (!place) return files;
  FileDescriptor opened(
      ::openat(place->folder.get(), place->name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseFolder> entries(opened ? ::fdopendir(opened.get()) : nullptr);
  if (!entries) return files;
  opened.release();  // it is closed with the entries
  while (const dirent* entry = ::readdir(entries.get())) {
    if (files.size() >= most) break;
    struct stat status {};  // one that cannot be asked must not hide the others
    if (::fstatat(::dirfd(entries.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
      files.push_back({entry->d_name, static_cast<std::uint64_t>(status.st_size)});
  }
  return files;
}

}  // namespace dtrain
