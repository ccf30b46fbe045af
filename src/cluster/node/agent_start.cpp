#include "agent_start.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostSaid = 4 << 10;

struct Pipe {
  FileDescriptor out, in;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe");
    out = FileDescriptor(ends[0]);
    in = FileDescriptor(ends[1]);
  }
};

// As the user who logs in, whose files the job's are; the node's own process is root's.
Spawn agent_of(const std::string& login) {
  std::vector<std::string> command = own_command();
  if (command.size() == 1) command[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  command.insert(command.end(), {"agent", "--apart"});
  const passwd* user = ::getpwnam(login.c_str());
  const bool other = user && ::geteuid() == 0 && user->pw_uid != 0;
  if (other) command.insert(command.begin(), {"/usr/sbin/runuser", "-u", login, "--"});
  Spawn child = spawn_of(std::move(command));
  child.environment = own_environment();
  if (user) {
    child.environment = with_variables(std::move(child.environment),
                                       {fmt::format("HOME={}", user->pw_dir), fmt::format("USER={}", login)});
    child.folder = user->pw_dir;
  }
  child.group = Spawn::Group::session;
  return child;
}

std::string all_of(const FileDescriptor& pipe) {
  std::string said;
  std::array<char, 1024> piece{};
  for (ssize_t size = 0; (size = ::read(pipe.get(), piece.data(), piece.size())) != 0;) {
    if (size < 0 && errno != EINTR) break;
    if (size > 0 && said.size() < kMostSaid) said.append(piece.data(), static_cast<std::size_t>(size));
  }
  return said;
}

}  // namespace

std::string start_agent(const std::string& join, const std::string& login) {
  Pipe input, said;
  Spawn child = agent_of(login);
  child.input = input.out.get();
  child.error = said.in.get();
  pid_t agent = 0;
  try {
    agent = spawn(child);
  } catch (const Error& error) {
    return error.what();
  }
  input.out = FileDescriptor();
  said.in = FileDescriptor();
  const bool written = ::write(input.in.get(), join.data(), join.size()) == static_cast<ssize_t>(join.size());
  input.in = FileDescriptor();
  const std::string words = all_of(said.out);
  int status = 0;
  while (::waitpid(agent, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && written) return {};
  return fmt::format("its agent ended with {}: {}", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                     trim(words));
}

}  // namespace dtrain::cluster
