#include <algorithm>
#include <fstream>
#include <string>

#include <dtrain/base/machine.hpp>
#include <dtrain/base/text.hpp>

#include "control_groups.hpp"

namespace dtrain {
namespace {

double bytes_in(const Path& file, double unless_said) { return parse_number(first_line(file)).value_or(unless_said); }

// Of memory.stat. A group gives the pages of files back before it runs out, as a machine does.
double file_bytes(const Path& group, const std::string& prefix) {
  std::ifstream file(group / "memory.stat");
  double sum = 0, bytes = 0;
  for (std::string name; file >> name >> bytes;) {
    if (name == prefix + "inactive_file" || name == prefix + "active_file") sum += bytes;
  }
  return sum;
}

double left_of(double most, double used, double of_files) {
  return most == kNoLimit ? kNoLimit : std::max(0.0, most - std::max(0.0, used - of_files));
}

double unified_most(const Path& group) { return bytes_in(group / "memory.max", kNoLimit); }  // "max": none
double divided_most(const Path& group) { return bytes_in(group / "memory.limit_in_bytes", kNoLimit); }

double unified_left(const Path& group) {
  return left_of(unified_most(group), bytes_in(group / "memory.current", 0), file_bytes(group, ""));
}

// With the groups below it: "total_".
double divided_left(const Path& group) {
  return left_of(divided_most(group), bytes_in(group / "memory.usage_in_bytes", 0), file_bytes(group, "total_"));
}

std::uint64_t lesser(std::uint64_t of_machine, double of_groups) {
  return of_groups == kNoLimit ? of_machine : std::min(of_machine, static_cast<std::uint64_t>(of_groups));
}

}  // namespace

std::uint64_t memory_info(std::string_view line, const Path& root) {
  std::ifstream file(root / "proc/meminfo");  // "MemTotal:  12 kB"
  std::string name, unit;
  for (std::uint64_t kibibytes = 0; file >> name >> kibibytes; std::getline(file, unit)) {
    if (name.ends_with(':') && std::string_view(name).substr(0, name.size() - 1) == line) return kibibytes << 10;
  }
  return 0;
}

Memory usable_memory(const Path& root) {
  const std::uint64_t total = memory_info("MemTotal", root), said = memory_info("MemAvailable", root);
  const std::uint64_t available = said > 0 ? said : total;  // kernels before 3.14 do not say it
  return {.total = lesser(total, least_of_groups(root, {"memory", unified_most, divided_most})),
          .available = lesser(available, least_of_groups(root, {"memory", unified_left, divided_left}))};
}

}  // namespace dtrain
