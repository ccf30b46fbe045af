// Copies files of this machine, and their permissions, to other hosts: only differences are sent, and everything sent
// is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

struct SyncFile {
  std::string name;  // path below the folder, with '/'; of a single file its name
  Path path;
  unsigned mode = 0644;
  std::string sha256;
};

struct SyncTree {
  bool is_folder = false;
  std::vector<std::string> folders;  // paths below the folder, parents first
  std::vector<SyncFile> files;
  std::vector<std::string> skipped;  // links to folders, sockets and the like, with the reason
};

// Reads a file, or a folder with everything below it. Links to files count as files. A pattern (with * ? [] as in a
// shell) excludes what it matches by name or by path below the folder; a folder is excluded with its content. Throws
// UsageError if the source does not exist.
SyncTree read_tree(const Path& source, const std::vector<std::string>& excluded);

struct SyncResult {
  std::size_t files = 0, copied = 0, modes = 0;  // modes: files of which only the permissions were set
  std::size_t refused_modes = 0;                 // files with the right content whose permissions the host keeps
  std::uint64_t bytes = 0;                       // of the copied files
};
// A warning for refused_modes: what stays, and why. Empty: nothing does.
std::string refused_modes_text(const SyncResult& result);

// Makes `destination` on the host hold the file, or the content of the folder; other files there stay. A file goes into
// `destination` if that ends in '/' or is a folder. "~/" at its front, or an empty path, is the user's home. Content is
// never sent for permissions alone: where the host refuses to set them, as for the files of another user, the file
// stays as it is and counts in refused_modes. Throws RemoteError; every file there is then complete, old or new.
SyncResult sync_tree(const SyncTree& tree, net::SshSession& session, std::string destination);

}  // namespace dtrain::launcher
