#include <dtrain/base/ask_program.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>

#include "late_children.hpp"

namespace dtrain {
namespace {

using namespace std::chrono_literals;
constexpr auto kPoll = 5ms;
constexpr auto kGrace = 20ms;                // for one that was killed
constexpr off_t kLongest = off_t{64} << 20;  // kubectl says up to 10 KB of each pod

std::string content_of(const FileDescriptor& file) { return read_file(fmt::format("/proc/self/fd/{}", file.get())); }

bool is_endless(const FileDescriptor& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 && facts.st_size > kLongest;
}

// What schedulers' and drivers' tools read; everything else, such as credentials, is none of their business.
constexpr std::array<std::string_view, 13> kAsked = {
    "PATH=",  "HOME=", "USER=", "LOGNAME=",         "LANG=", "LC_",  "TMPDIR=",
    "SLURM_", "SGE_",  "PBS_",  "LD_LIBRARY_PATH=", "OMPI_", "OPAL_"};

std::vector<std::string> environment_of_question(std::vector<std::string> environment) {
  std::erase_if(environment, [](const std::string& variable) {
    return std::ranges::none_of(kAsked, [&](std::string_view lead) { return variable.starts_with(lead); });
  });
  return environment;
}

LateChildren& late_children() {
  static LateChildren all;
  return all;
}

void end(pid_t process) {
  kill_tree(process);
  std::this_thread::sleep_for(kGrace);
  late_children().add(process);
}

}  // namespace

std::optional<ProgramAnswer> try_asking(Spawn child, std::chrono::milliseconds deadline, const std::stop_token& stop) {
  return try_asking(std::move(child), deadline, [&] { return stop.stop_requested(); });
}

std::optional<ProgramAnswer> try_asking(Spawn child, std::chrono::milliseconds deadline,
                                        const std::function<bool()>& is_unwanted) {
  late_children().reap();
  // In memory rather than a pipe: the child never waits for its reader.
  const FileDescriptor output = memory_file(), errors = memory_file();
  if (child.output < 0) child.output = output.get();
  if (child.error < 0) child.error = errors.get();
  const auto until = std::chrono::steady_clock::now() + deadline;
  const pid_t process = spawn(child);
  for (; !has_ended(process); std::this_thread::sleep_for(kPoll)) {
    if (is_unwanted() || std::chrono::steady_clock::now() > until || is_endless(output) || is_endless(errors)) {
      end(process);
      return std::nullopt;
    }
  }
  return ProgramAnswer{wait_for_end(process).shell_code(), content_of(output), content_of(errors)};
}

ProgramAnswer ask_program(const std::vector<std::string>& command, std::chrono::milliseconds deadline) {
  Spawn child = spawn_of(command);
  child.environment = environment_of_question(own_environment());
  child.group = Spawn::Group::session;
  std::optional<ProgramAnswer> answer = try_asking(std::move(child), deadline);
  if (!answer) throw Error(fmt::format("{} did not answer within {}", command[0], format_duration(deadline)));
  return *std::move(answer);
}

}  // namespace dtrain
