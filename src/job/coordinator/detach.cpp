#include "detach.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>
#include <tuple>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::job {
namespace {

// What the background process writes: first to memory, then to the log.
struct BackgroundOutput {
  FileDescriptor words, log, pipe;
};

std::string background_words(const FileDescriptor& words) {
  return read_file(fmt::format("/proc/self/fd/{}", words.get()));
}

// A full disk takes nothing; the process that waits has the text from memory.
void append_to_log(const FileDescriptor& log, const std::string& text) { std::ignore = write_all(log, bytes_of(text)); }

// Tells where in the log the process goes on.
void take_log(const BackgroundOutput& output, const Path& log_path) {
  append_to_log(output.log, background_words(output.words));
  const std::uint64_t begin = std::filesystem::file_size(log_path);
  redirect_streams(output.log);
  std::ignore = write_all(output.pipe, std::as_bytes(std::span(&begin, 1)));
}

// While a job that has not ended is recorded, its coordinator writes the log.
bool is_log_of_another(const JobFolder& folder) {
  bool is_of_another = true;
  std::ignore = attempt([&] {
    const auto recorded = read_coordinator(folder);
    is_of_another = recorded && !recorded->over();
  });
  return is_of_another;
}

// Returns true if all bytes came, false if the other end was closed.
bool wait_for_bytes(const FileDescriptor& pipe, std::span<std::byte> bytes, pid_t child) {
  while (true) {
    pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, 200);
    if (stop_signal() != 0) {
      ::kill(child, SIGTERM);
      throw Interrupted(stop_signal(), "stopped before the job ran; the job was asked to end");
    }
    if (waiting.revents == 0) continue;
    const ssize_t got = ::read(pipe.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    return got == static_cast<ssize_t>(bytes.size());
  }
}

}  // namespace

Detached detach(const JobFolder& folder) {
  make_folder(folder.logs());
  const Path log_path = folder.coordinator_log();
  BackgroundOutput output{.words = memory_file(), .log = open_log(log_path), .pipe = {}};
  Pipe pipe = make_pipe();
  const pid_t child = fork_process();
  if (child == 0) {
    ::setsid();
    redirect_streams(output.words);
    output.pipe = std::move(pipe.write_end);
    auto own = std::make_shared<BackgroundOutput>(std::move(output));
    return {.take_log = [own, log_path] { take_log(*own, log_path); },
            .tell_running =
                [own] {
                  if (own->pipe && ::write(own->pipe.get(), "r", 1) == 1) own->pipe = FileDescriptor();
                },
            .outcome = {}};
  }
  watch_stop_signals();
  pipe.write_end = FileDescriptor();
  std::uint64_t begin = 0;
  std::byte running{};
  bool has_log = false, runs = false;
  try {
    has_log = wait_for_bytes(pipe.read_end, std::as_writable_bytes(std::span(&begin, 1)), child);
    runs = has_log && wait_for_bytes(pipe.read_end, std::span(&running, 1), child);
  } catch (const Interrupted&) {  // its words so far, which memory alone holds until it has the log
    if (!has_log && !is_log_of_another(folder)) append_to_log(output.log, background_words(output.words));
    throw;
  }
  Detached::Outcome outcome{.runs = runs, .pid = child, .exit_code = 0, .said = {}};
  if (!runs) outcome.exit_code = wait_for_end(child).shell_code();
  outcome.said = background_words(output.words);
  if (has_log) {
    outcome.said += read_file(log_path).substr(begin);
  } else if (!is_log_of_another(folder)) {
    append_to_log(output.log, outcome.said);
  }
  return {.take_log = [] {}, .tell_running = [] {}, .outcome = std::move(outcome)};
}

}  // namespace dtrain::job
