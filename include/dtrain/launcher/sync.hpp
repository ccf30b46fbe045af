// Files of this machine on other hosts: only what differs there travels, and what travelled is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

struct SyncFile {
  std::string name;  // below the folder, with '/' between; of a single file its own
  Path path;
  unsigned mode = 0644;
  std::string sha256;
};

struct SyncTree {
  bool is_folder = false;
  std::vector<std::string> folders;  // below the folder, parents first
  std::vector<SyncFile> files;
  std::vector<std::string> skipped;  // links to folders, sockets and the like: with their reason, for people
};

// A file, or a folder with all below it. Links to files count as files. A pattern (with * ? [] as in a shell) leaves
// out what it fits, by name or by the whole name below the folder; a folder with all below it. UsageError: no such
// file.
SyncTree read_tree(const Path& source, const std::vector<std::string>& excluded);

struct SyncResult {
  std::size_t files = 0, copied = 0;
  std::uint64_t bytes = 0;  // copied
};

// Afterwards `destination` on the host holds the file, or the folder's content; what else is there stays. A file goes
// into `destination` if that ends in '/' or is a folder. "~/" at its front is the user's home, as is nothing. Throws
// RemoteError; every file there is whole then, old or new.
SyncResult sync_tree(const SyncTree& tree, net::SshSession& session, std::string destination);

}  // namespace dtrain::launcher
