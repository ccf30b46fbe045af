// Files and folders where other users may write, too: whether this process may believe what is there.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain {

// What is there is another user's, or others may have written it.
class ForeignFile : public UsageError {
 public:
  using UsageError::UsageError;
};

// Reads a file that decides what this process does. Throws ForeignFile unless it is a regular file, no symbolic link,
// that belongs to the effective user of this process or to root, and that no other user may write. Where a file server
// gives all files to one user, or keeps no permissions, a file is as good as a new one of this process beside it.
std::string read_own_file(const Path& path);

// The permissions of others that a folder must not give.
enum class FolderRights : unsigned { to_write = 022, any = 077 };
// Whether the name is that of a folder, and not of a link to one, that belongs to the effective user of this process
// and gives others no such right. File servers as above.
bool is_own_folder(const Path& path, FolderRights kept_from_others = FolderRights::to_write);

// The permissions of a folder that others may not enter, and of one that they may only read.
inline constexpr unsigned kPrivateFolder = 0700, kReadableFolder = 0755;
// The permissions of a file that others may only read.
inline constexpr unsigned kReadableFile = 0644;
// Makes the folder with these permissions, less the umask, and its parents as make_folder() does. One that is there
// stays as it is.
void make_own_folder(const Path& path, unsigned permissions = kPrivateFolder);
// Makes each folder of the relative path `below` in `home` so that others may only read it; returns the last one.
Path make_own_folders(const Path& home, const Path& below);

// The user of this id; the number where the machine knows no name for it.
std::string user_name(unsigned id);
// The same of the owner of what has this name, without following a link; "" where there is nothing.
std::string owner_of(const Path& path);

}  // namespace dtrain
