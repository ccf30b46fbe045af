#include <dtrain/base/machine.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

bool is_on_ec2() {
  try {
    return read_file("/sys/class/dmi/id/sys_vendor").starts_with("Amazon EC2");
  } catch (const Error&) {
    return false;
  }
}

std::uint64_t memory_info(std::string_view line) {
  std::ifstream file("/proc/meminfo");  // "MemTotal:  12 kB"
  std::string name, unit;
  for (std::uint64_t kibibytes = 0; file >> name >> kibibytes; std::getline(file, unit)) {
    if (name.ends_with(':') && std::string_view(name).substr(0, name.size() - 1) == line) return kibibytes << 10;
  }
  return 0;
}

int nvidia_device_count() {
  int count = 0;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", count))) ++count;
  return count;
}

bool is_program(const Path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<Path> find_in_path(const std::string& name, const std::string& folders) {
  if (folders.empty()) return std::nullopt;
  for (const std::string& folder : split(folders, ':')) {
    const Path file = Path(folder.empty() ? "." : folder) / name;
    if (is_program(file)) return file;
  }
  return std::nullopt;
}

}  // namespace dtrain
