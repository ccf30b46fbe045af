#include "ask_program.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>

namespace dtrain::launch {
namespace {

using namespace std::chrono_literals;
constexpr auto kPoll = 5ms;

FileDescriptor memory() {
  FileDescriptor file(::memfd_create("dtrain answer", MFD_CLOEXEC));
  if (!file) throw Error(fmt::format("cannot hold an answer: {}", std::strerror(errno)));
  return file;
}

std::string content_of(const FileDescriptor& file) { return read_file(fmt::format("/proc/self/fd/{}", file.get())); }

}  // namespace

ProgramAnswer ask_program(const std::vector<std::string>& command, std::chrono::milliseconds deadline) {
  const FileDescriptor output = memory(), errors = memory();
  Spawn child = spawn_of(command);
  child.environment = own_environment();
  child.output = output.get();
  child.error = errors.get();
  child.group = Spawn::Group::session;
  const pid_t process = spawn(child);
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (!has_ended(process)) {
    if (std::chrono::steady_clock::now() > until) {
      kill_tree(process);
      ::waitpid(process, nullptr, 0);
      throw Error(fmt::format("{} did not answer within {} s", command[0], deadline.count() / 1000));
    }
    std::this_thread::sleep_for(kPoll);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, content_of(output), content_of(errors)};
}

}  // namespace dtrain::launch
