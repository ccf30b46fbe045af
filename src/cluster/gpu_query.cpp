#include "gpu_query.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/checkup.hpp>

namespace dtrain::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr std::array kPlaces{"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/opt/bin/nvidia-smi"};
constexpr std::size_t kMostSaid = 64 << 10;
constexpr milliseconds kLook{20};

int count_devices() {
  int count = 0;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", count))) ++count;
  return count;
}

std::string program() {
  std::error_code ignored;
  for (const char* place : kPlaces) {
    if (std::filesystem::exists(place, ignored)) return place;
  }
  return {};
}

// False: the time was over before the end of what it says.
bool read_all(int pipe, Clock::time_point until, std::string& said) {
  for (std::array<char, 4096> piece{};;) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
    pollfd wait{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready == 0) return false;
    const ssize_t size = ::read(pipe, piece.data(), piece.size());
    if (size == 0) return true;
    if (size < 0 && errno != EINTR) return true;
    if (size > 0 && said.size() < kMostSaid) said.append(piece.data(), static_cast<std::size_t>(size));
  }
}

// A process that hangs inside of the driver cannot be killed, so nobody waits for it beyond the time.
std::optional<int> code_of(pid_t child, Clock::time_point until) {
  for (int status = 0;; std::this_thread::sleep_for(kLook)) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (Clock::now() >= until) return std::nullopt;
  }
}

// Fills gpus, or gpu_error.
void ask(const std::string& program, milliseconds patience, Checkup& checkup) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  const FileDescriptor out(ends[0]);
  FileDescriptor in(ends[1]);
  Spawn child =
      spawn_of({program, fmt::format("--query-gpu={}", fmt::join(kGpuFields, ",")), "--format=csv,noheader,nounits"});
  child.environment = own_environment();
  child.output = child.error = in.get();
  const auto until = Clock::now() + patience;
  const pid_t process = spawn(child);
  in = FileDescriptor();
  std::string said;
  std::optional<int> code;
  if (read_all(out.get(), until, said)) code = code_of(process, until);
  if (!code) {
    ::kill(-process, SIGKILL);
    code_of(process, Clock::now() + kLook);
    checkup.gpu_error = fmt::format("nvidia-smi gave no answer within {}", format_duration(patience));
  } else if (*code != 0) {
    checkup.gpu_error = fmt::format("nvidia-smi ended with exit code {}: {}", *code, trim(said));
  } else {
    checkup.gpus = gpus_in(said);
  }
}

}  // namespace

Checkup look_at_gpus(milliseconds patience) {
  Checkup checkup{.devices = count_devices()};
  try {
    const std::string found = program();
    if (!found.empty()) ask(found, patience, checkup);
    if (found.empty() && checkup.devices > 0) checkup.gpu_error = "nvidia-smi is not there";
  } catch (const Error& error) {
    checkup.gpu_error = error.what();
  }
  return checkup;
}

}  // namespace dtrain::cluster
