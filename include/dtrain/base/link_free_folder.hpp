// A folder whose content other users may have written, for a program that shows it with the rights of this user. No
// name in it leads out of it: below the folder no symbolic link is followed. Only regular files are opened, and nothing
// is waited for, such as the writer of a FIFO.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain {

struct ListedFile {
  std::string name;  // inside the folder
  std::uint64_t size = 0;
};

// Paths begin with the folder's own. Threads may share one. An Error is thrown for what is there and cannot be looked
// at, and where the folder itself cannot be reached.
class LinkFreeFolder {
 public:
  // The folder may itself be a link, or stand behind one: its path is not another user's.
  explicit LinkFreeFolder(const Path& top);
  // Whether it is the path of this folder, or of something below it.
  bool has(const std::string& path) const;
  // nullopt: there is no such regular file.
  std::optional<struct stat> status(const std::string& path) const;
  // At most so many bytes from there on; nullopt: there is no such regular file.
  std::optional<std::string> read(const std::string& path, std::uint64_t from, std::uint64_t most) const;
  // Its regular files, at most so many; none where the folder cannot be listed.
  std::vector<ListedFile> list(const std::string& folder, std::size_t most) const;

 private:
  struct Place {
    FileDescriptor folder;
    std::string name;  // in it; "." for this folder itself
  };
  std::optional<Place> reach(const std::string& path) const;
  FileDescriptor open(const std::string& path) const;  // for reading; none: there is no such regular file

  const std::string top_, start_;  // start_: what the paths below it begin with
};

}  // namespace dtrain
