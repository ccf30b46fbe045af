#include "agent_start.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostSaid = 4 << 10;

struct LoginUser {
  uid_t id = 0;
  std::string home;
};

// Several threads start agents at once. nullopt: this machine has no such user.
std::optional<LoginUser> user_named(const std::string& login) {
  passwd entry{}, *found = nullptr;
  std::vector<char> text(16 << 10);
  if (::getpwnam_r(login.c_str(), &entry, text.data(), text.size(), &found) != 0 || !found) return std::nullopt;
  return LoginUser{found->pw_uid, found->pw_dir};
}

// The agent runs as the login user, who owns the files of the job; the node's own process runs as root.
Spawn agent_of(const std::string& login) {
  std::vector<std::string> command = own_command();
  if (command.size() == 1) command[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  command.insert(command.end(), {"agent", "--apart"});
  const auto user = user_named(login);
  const bool other = user && ::geteuid() == 0 && user->id != 0;
  if (other) command.insert(command.begin(), {"/usr/sbin/runuser", "-u", login, "--"});
  Spawn child = spawn_of(std::move(command));
  child.environment = own_environment();
  if (user) {
    child.environment = with_variables(std::move(child.environment),
                                       {fmt::format("HOME={}", user->home), fmt::format("USER={}", login)});
    child.folder = user->home;
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

std::string start_agent(const std::string& join, const std::string& login) try {
  Pipe errors = make_pipe();
  const FileDescriptor input = memory_file(join);
  Spawn child = agent_of(login);
  child.input = input.get();
  child.error = errors.write_end.get();
  const pid_t agent = spawn(child);
  errors.write_end = FileDescriptor();
  const std::string words = all_of(errors.read_end);
  const ProcessEnd end = wait_for_end(agent);
  return end.ok() ? "" : fmt::format("its agent ended with {}: {}", end.shell_code(), trim(words));
} catch (const std::exception& error) {
  return error.what();
}

}  // namespace dtrain::cluster
