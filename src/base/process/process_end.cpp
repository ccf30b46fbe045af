#include <dtrain/base/process_end.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <dtrain/base/text.hpp>

namespace dtrain {

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
