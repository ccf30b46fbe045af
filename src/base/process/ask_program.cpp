#include <dtrain/base/ask_program.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain {
namespace {

using namespace std::chrono_literals;
constexpr auto kPoll = 5ms;
constexpr auto kGrace = 20ms;  // for one that was killed
constexpr off_t kLongest = off_t{1} << 20;

std::string content_of(const FileDescriptor& file) { return read_file(fmt::format("/proc/self/fd/{}", file.get())); }

bool is_endless(const FileDescriptor& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 && facts.st_size > kLongest;
}

void end(pid_t process) {
  kill_tree(process);
  std::this_thread::sleep_for(kGrace);
  ::waitpid(process, nullptr, WNOHANG);
}

}  // namespace

std::optional<ProgramAnswer> try_asking(Spawn child, std::chrono::milliseconds deadline) {
  // In memory rather than a pipe: the child never waits for its reader.
  const FileDescriptor output = memory_file(), errors = memory_file();
  if (child.output < 0) child.output = output.get();
  if (child.error < 0) child.error = errors.get();
  const auto until = std::chrono::steady_clock::now() + deadline;
  const pid_t process = spawn(child);
  for (; !has_ended(process); std::this_thread::sleep_for(kPoll)) {
    if (std::chrono::steady_clock::now() > until || is_endless(output) || is_endless(errors)) {
      end(process);
      return std::nullopt;
    }
  }
  return ProgramAnswer{wait_for_end(process).shell_code(), content_of(output), content_of(errors)};
}

ProgramAnswer ask_program(const std::vector<std::string>& command, std::chrono::milliseconds deadline) {
  Spawn child = spawn_of(command);
  child.environment = own_environment();
  child.group = Spawn::Group::session;
  std::optional<ProgramAnswer> answer = try_asking(std::move(child), deadline);
  if (!answer) throw Error(fmt::format("{} did not answer within {}", command[0], format_duration(deadline)));
  return *std::move(answer);
}

}  // namespace dtrain
