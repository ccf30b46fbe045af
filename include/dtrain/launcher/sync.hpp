// Copies files of this machine, and their permissions, to other hosts: only differences are sent, and everything sent
// is checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

struct SyncFile {
  std::string name;  // path below the folder, with '/'; of a single file its name
  Path path;
  unsigned mode = 0644;
  std::string sha256;
};

struct SyncFolder {
  std::string name;  // path below the folder that is copied
  unsigned mode = 0755;
};

struct SyncTree {
  bool is_folder = false;
  std::vector<SyncFolder> folders;  // parents first
  std::vector<SyncFile> files;
  std::vector<std::string> skipped;  // links to folders, sockets and the like, with the reason
};

// Files and folders that read_tree() leaves out, folders with their content.
struct LeftOut {
  std::vector<std::string> patterns{};  // with * ? [] as in a shell, of names or of paths below the folder
  std::vector<std::string> paths{};     // exact, below the folder
};

// Reads a file, or a folder with everything below it. Links to files count as files. Throws UsageError if the source
// does not exist, and Error for what cannot be read.
SyncTree read_tree(const Path& source, const LeftOut& left_out);

// The same tree for several hosts, some of which join later. Members may be called from any thread; others wait while
// one reads the tree.
class SyncSource {
 public:
  using Clock = std::chrono::steady_clock;
  SyncSource(Path source, LeftOut left_out) : source_(std::move(source)), left_out_(std::move(left_out)) {}

  // The tree as it was at `time` or later: the one read last, where its reading began after `time`; else the source is
  // read again, and only changed files are hashed. Throws Stopped soon after a stop request.
  std::shared_ptr<const SyncTree> tree_since(Clock::time_point time, const std::stop_token& stop);

  // A file with the same facts has the same content.
  struct FileFacts {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified = 0, changed = 0;  // nanoseconds since 1970, of content and of anything
    friend bool operator==(const FileFacts&, const FileFacts&) = default;
  };
  struct Hashed {
    FileFacts facts;
    std::string sha256;
  };
  using Hashes = std::map<std::string, Hashed>;  // by the name in the tree

 private:
  const Path source_;
  const LeftOut left_out_;
  Mutex mutex_;
  std::shared_ptr<const SyncTree> tree_ DTRAIN_GUARDED_BY(mutex_);
  Clock::time_point read_at_ DTRAIN_GUARDED_BY(mutex_);  // when the reading of tree_ began
  Hashes hashes_ DTRAIN_GUARDED_BY(mutex_);
};

struct SyncResult {
  std::size_t files = 0, copied = 0, modes = 0;  // modes: files of which only the permissions were set
  std::size_t refused_modes = 0;                 // files with the right content whose permissions the host keeps
  std::uint64_t bytes = 0;                       // of the copied files
};
// A warning for refused_modes: what stays, and why. Empty: nothing does.
std::string refused_modes_text(const SyncResult& result);

// Makes `destination` on the host hold the file, or the content of the folder; other files there stay. New folders get
// the permissions of those here, and the user may always write to them; folders that are there keep theirs. A file goes
// into `destination` if that ends in '/' or is a folder. "~/" at its front, or an empty path, is the user's home.
// Content is never sent for permissions alone: where the host refuses to set them, as for the files of another user,
// the file stays as it is and counts in refused_modes. Throws RemoteError; every file there is then complete, old or
// new.
SyncResult sync_tree(const SyncTree& tree, net::SshSession& session, std::string destination);

}  // namespace dtrain::launcher
