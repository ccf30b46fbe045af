#include <dtrain/base/wait_status.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <cerrno>

#include <dtrain/base/text.hpp>

namespace dtrain {

ProcessEnd process_end_of(int wait_status) {
  return {.code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0,
          .signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0};
}

ProcessEnd wait_for_end(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return process_end_of(status);
}

std::string describe_end(int exit_code, int signal) {
  if (signal == 0) return fmt::format("ended with exit code {}", exit_code);
  const char* name = ::sigabbrev_np(signal);
  return fmt::format("was killed by signal {}{}", signal, name ? fmt::format(" (SIG{})", name) : "");
}

std::optional<int> signal_number(std::string_view name) {
  const std::string_view wanted = starts_with_ignoring_case(name, "SIG") ? name.substr(3) : name;
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && wanted.size() == ::strlen(known) && starts_with_ignoring_case(wanted, known)) return number;
  }
  return std::nullopt;
}

}  // namespace dtrain
