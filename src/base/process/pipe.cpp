#include <dtrain/base/pipe.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>

namespace dtrain {

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)), hint_without_descriptors(errno));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

bool is_readable(const FileDescriptor& pipe, int wait_ms) {
  pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, wait_ms) == 1;
}

FileDescriptor memory_file(std::string_view text) {
  FileDescriptor file(::memfd_create("dtrain", MFD_CLOEXEC));
  if (!file || write_all(file, bytes_of(text)) != text.size() || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    throw Error(fmt::format("cannot hold {} bytes for a process: {}", text.size(), std::strerror(errno)),
                hint_without_descriptors(errno));
  }
  return file;
}

FileDescriptor open_log(const Path& path, unsigned permissions) {
  FileDescriptor log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, permissions));
  if (log) return log;
  if (errno == ELOOP) {
    throw Error(fmt::format("{}: cannot write: it is a symbolic link, which could lead to any file", path.string()),
                "remove the link; a link to the folder is followed");
  }
  throw Error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(errno)),
              hint_without_descriptors(errno));
}

bool wait_for_byte(const FileDescriptor& read_end) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

}  // namespace dtrain
