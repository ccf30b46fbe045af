// How a child process ended: waited for, decoded, and in words.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

struct ProcessEnd {
  int code = 0;  // argument of exit(), when signal is 0
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  // The exit code that a shell reports: 128 + signal for a signal.
  int shell_code() const { return signal == 0 ? code : 128 + signal; }
};

// Decodes what waitpid() stored.
ProcessEnd process_end_of(int wait_status);
// Blocks until the child ends, and reaps it. Returns at once after has_ended(). Code 0 where it is not a child.
ProcessEnd wait_for_end(pid_t child);

// "ended with exit code 3", or "was killed by signal 9 (SIGKILL)" where `signal` is not 0.
std::string describe_end(int exit_code, int signal);
inline std::string describe_end(const ProcessEnd& end) { return describe_end(end.code, end.signal); }
// The number of "KILL", "SIGKILL" or "kill"; nullopt for an unknown name.
[[nodiscard]] std::optional<int> signal_number(std::string_view name);

}  // namespace dtrain
