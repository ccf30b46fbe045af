#include "proxy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>
#include <dtrain/base/process.hpp>

namespace dtrain::net::ssh {

ProxyProcess::ProxyProcess(const std::string& line) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(fmt::format("cannot make a pair of sockets: {}", std::strerror(errno)),
                hint_without_descriptors(errno));
  near_end_ = FileDescriptor(ends[0]);
  const FileDescriptor far_end(ends[1]);
  ::fcntl(near_end_.get(), F_SETFL, O_NONBLOCK);
  // Its messages and questions belong to the user's terminal, as under ssh. Ctrl-C there begins a stop of the job, for
  // which the connection is still needed.
  process_ = spawn({.executable = "/bin/sh",
                    .arguments = {"sh", "-c", "exec " + line},
                    .environment = own_environment(),
                    .input = far_end.get(),
                    .output = far_end.get(),
                    .error = STDERR_FILENO,
                    .group = group_that_may_ask()});
}

ProxyProcess::~ProxyProcess() {
  kill_tree(process_);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace dtrain::net::ssh
