#include "doctor_trial.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::doctor {

FolderTrial::FolderTrial(const Path& folder, const std::string& mark, int number)
    : folder_(folder.empty() ? Path() : folder / fmt::format(".dtrain-doctor-{}", mark)),
      mark_(mark),
      number_(number) {}

std::string FolderTrial::content(int number) const { return fmt::format("{} {}\n", mark_, number); }
Path FolderTrial::file(int number) const { return folder_ / fmt::format("host-{}", number); }

FolderTrial::Written FolderTrial::write() {
  Written written;
  if (folder_.empty()) return written;
  if (!std::filesystem::is_directory(folder_.parent_path())) {
    written.error = "no such folder";
    return written;
  }
  try {
    make_folder(folder_);
    write_file_atomic(file(number_), "an older content\n");
    write_file_atomic(file(number_), content(number_));
  } catch (const Error& error) {
    written.error = error.what();
    return written;
  }
  const Path winner = folder_ / "winner";
  if (::link(file(number_).c_str(), winner.c_str()) == 0) {
    written.made_link = true;
    lock_ = FileDescriptor(::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
      written.error = fmt::format("cannot lock: {}", std::strerror(errno));
  } else if (errno != EEXIST) {
    written.error = fmt::format("cannot link: {}", std::strerror(errno));
  }
  return written;
}

FolderTrial::Seen FolderTrial::look(int hosts) const {
  Seen seen;
  if (folder_.empty()) return seen;
  for (int number = 0; number < hosts; ++number) {
    try {
      if (is_listed(file(number)) && read_file(file(number)) == content(number)) seen.numbers.push_back(number);
    } catch (const Error&) {  // it is not seen
    }
  }
  const Path lock = folder_ / "lock";
  if (!is_listed(lock)) return seen;
  const FileDescriptor opened(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
  if (opened) seen.lock_is_kept = ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return seen;
}

void FolderTrial::clean_up() {
  std::error_code ignored;  // another host may be doing the same
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace dtrain::doctor
