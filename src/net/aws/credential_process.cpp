#include "credential_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>

#include "instance.hpp"

namespace dtrain::net {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);
constexpr std::size_t kLongest = 64 << 10;

// What it prints until it closes its output; false: the time was up, or it prints without end.
bool read_until_closed(int fd, Clock::time_point end, std::string& text) {
  char chunk[4096];
  while (text.size() < kLongest) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) == 0) return false;
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

AwsCredentials run_credential_process(const std::string& command, const std::string& source) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe for credential_process");
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  Spawn child{.executable = "/bin/sh", .arguments = {"sh", "-c", command}, .environment = own_environment()};
  child.output = to.get();
  child.error = STDERR_FILENO;  // for people: a code to type, a page to open
  const pid_t process = spawn(child);
  to = FileDescriptor();
  std::string text;
  const bool in_time = read_until_closed(from.get(), Clock::now() + kPatience, text);
  if (!in_time) kill_tree(process);
  int status = 0;
  ::waitpid(process, &status, 0);
  const auto refuse = [&](const std::string& why) {
    return UsageError(fmt::format("{}: its credential_process {}", source, why), "run it by hand: " + command);
  };
  if (!in_time) throw refuse("did not end in time");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw refuse("failed");
  try {
    return credentials_from(text, source);
  } catch (const DataError& error) {
    throw refuse(fmt::format("printed no credentials: {}", error.what()));
  }
}

}  // namespace dtrain::net
