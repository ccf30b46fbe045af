#include <dtrain/base/machine.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

constexpr std::size_t kMachineIdentitySize = 32;

std::string read_if_there(const Path& file) {
  try {
    return read_file(file);
  } catch (const Error&) {
    return "";
  }
}

bool is_gpu_file(std::string_view name) {
  constexpr std::string_view kStart = "nvidia";
  return name.size() > kStart.size() && name.starts_with(kStart) &&
         name.find_first_not_of("0123456789", kStart.size()) == name.npos;
}

// Whether an entry of CUDA_VISIBLE_DEVICES names a GPU: a number below `gpus`, or an identifier such as GPU-8a5f...
// CUDA sees the GPUs in front of the first entry that names none.
bool names_gpu(std::string_view entry, int gpus) {
  const std::string name(trim(entry));
  const auto number = parse_integer(name);
  return number ? *number >= 0 && *number < gpus : name.starts_with("GPU-") || name.starts_with("MIG-");
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string machine_identity() {
  std::error_code unknown;
  const Path network = std::filesystem::read_symlink("/proc/self/ns/net", unknown);
  const std::string boot = read_if_there("/proc/sys/kernel/random/boot_id");
  if (unknown || boot.empty()) return "";
  const std::string all = read_if_there("/etc/machine-id") + "\n" + boot + "\n" + network.string();
  return sha256_hex(bytes_of(all)).substr(0, kMachineIdentitySize);
}

bool is_on_ec2() {
  try {
    return read_file("/sys/class/dmi/id/sys_vendor").starts_with("Amazon EC2");
  } catch (const Error&) {
    return false;
  }
}

int nvidia_device_count() { return nvidia_device_count("/dev", environment("CUDA_VISIBLE_DEVICES")); }

int nvidia_device_count(const Path& folder, const std::optional<std::string>& visible) {
  int files = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_gpu_file(entry->path().filename().string())) ++files;
  }
  if (!visible || files == 0) return files;
  const std::vector<std::string> names = split(*visible, ',');
  const auto end = std::ranges::find_if_not(names, [&](const std::string& name) { return names_gpu(name, files); });
  return std::min(files, static_cast<int>(end - names.begin()));
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
