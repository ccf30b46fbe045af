#include <dtrain/base/own_files.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <dtrain/base/temporaries.hpp>

namespace dtrain {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr uid_t kRoot = 0;
constexpr const char* kOthersMayWrite = "other users may write it";

// What the file server makes of a new file of this process in that folder; nullopt: no file can be made there.
std::optional<struct stat> new_file_in(const Path& folder) {
  const Path name = temporary_for(folder / "own");
  const FileDescriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
  struct stat facts {};
  const bool is_known = file && ::fstat(file.get(), &facts) == 0;
  if (file) ::unlink(name.c_str());
  return is_known ? std::optional(facts) : std::nullopt;
}

// Empty: only this user or root can have written the file.
std::string why_foreign(const struct stat& file, uid_t own) {
  if (!S_ISREG(file.st_mode)) return "it is no file";
  if (file.st_uid != own && file.st_uid != kRoot) return fmt::format("it belongs to {}", user_name(file.st_uid));
  if ((file.st_mode & kOthersWrite) != 0) return kOthersMayWrite;
  return {};
}

// The rights that the file server gives to others of every file are no sign of anything.
std::string why_foreign_there(struct stat file, const Path& folder) {
  std::string why = why_foreign(file, ::geteuid());
  if (why.empty()) return why;
  const auto fresh = new_file_in(folder);
  if (!fresh) return why;
  file.st_mode &= ~(fresh->st_mode & kOthersWrite);
  return why_foreign(file, fresh->st_uid);
}

[[noreturn]] void refuse(const Path& path, const std::string& why) {
  const std::string own = user_name(::geteuid());
  const std::string remedy = why == kOthersMayWrite
                                 ? fmt::format("look at what is in it, then chmod go-w {}", path.string())
                                 : fmt::format("remove it, and repeat the command that made it as {}", own);
  throw ForeignFile(fmt::format("{}: {}, so it is not obeyed", path.string(), why),
                    fmt::format("only files of {} or root that no other user may write are obeyed: {}", own, remedy));
}

}  // namespace

std::string read_own_file(const Path& path) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor file(::open(path.c_str(), kFlags | O_NONBLOCK));  // a FIFO would wait for its writer
  // Another process, such as a file server, has a lease on the file: wait until the kernel took it back.
  if (!file && errno == EWOULDBLOCK) file = FileDescriptor(::open(path.c_str(), kFlags));
  if (!file && errno == ELOOP) refuse(path, "it is a symbolic link");
  if (!file) throw Error(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  struct stat facts {};
  const bool is_known = ::fstat(file.get(), &facts) == 0;
  const std::string why = is_known ? why_foreign_there(facts, path.parent_path()) : "its owner is unknown";
  if (!why.empty()) refuse(path, why);
  return read_file(file, path);
}

bool is_own_folder(const Path& path, FolderRights kept_from_others) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return false;
  const auto is_own = [&](uid_t own, mode_t given) {
    return facts.st_uid == own && (facts.st_mode & static_cast<mode_t>(kept_from_others) & ~given) == 0;
  };
  if (is_own(::geteuid(), 0)) return true;
  const auto fresh = new_file_in(path);
  return fresh && is_own(fresh->st_uid, fresh->st_mode);
}

void make_own_folder(const Path& path, unsigned permissions) {
  const Path folder = path.has_filename() ? path : path.parent_path();
  make_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), permissions) != 0) make_folder(folder);  // it is there, or this says what is wrong
}

Path make_own_folders(const Path& home, const Path& below) {
  Path folder = home;
  for (const Path& part : below) make_own_folder(folder /= part, kReadableFolder);
  return folder;
}

std::string user_name(unsigned id) {
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> text{};
  const bool is_known = ::getpwuid_r(id, &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
  return is_known ? found->pw_name : std::to_string(id);
}

std::string owner_of(const Path& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 ? user_name(facts.st_uid) : std::string();
}

}  // namespace dtrain
