#include "process_facts.hpp"

#include <ctime>
#include <fstream>
#include <string>

#include <dtrain/base/text.hpp>

namespace dtrain::job {

std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    const auto words = split(trim(line.substr(6)), ' ');
    return static_cast<std::uint64_t>(parse_integer(words.front()).value_or(0)) * 1024;
  }
  return 0;
}

std::chrono::duration<double> time_since_exec() {
  constexpr std::size_t kStartTime = 19;  // field 22 of proc(5), counted from the state after the program's name
  std::ifstream stat("/proc/self/stat");
  std::string line;
  std::getline(stat, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  const auto fields = split(trim(line.substr(name_end + 1)), ' ');
  if (fields.size() <= kStartTime) return {};
  const double ticks = static_cast<double>(parse_integer(fields[kStartTime]).value_or(0));
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double uptime = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return std::chrono::duration<double>(uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace dtrain::job
