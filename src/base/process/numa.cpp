#include <dtrain/base/numa.hpp>

#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The kernel's "0-3,8": those of `among` that it names.
std::vector<int> named_cpus(std::string_view list, const std::vector<int>& among) {
  std::vector<int> cpus;
  for (const std::string& range : split(trim(list), ',')) {
    const auto ends = split(range, '-');
    const auto first = parse_integer(ends.front()), last = parse_integer(ends.back());
    if (!first || !last) continue;
    std::ranges::copy_if(among, std::back_inserter(cpus), [&](int cpu) { return cpu >= *first && cpu <= *last; });
  }
  return cpus;
}

}  // namespace

std::vector<std::vector<int>> numa_nodes(const Path& root) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<std::vector<int>> nodes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root / "sys/devices/system/node", ignored)) {
    const Path list = entry.path() / "cpulist";
    if (!entry.path().filename().string().starts_with("node") || !std::filesystem::exists(list, ignored)) continue;
    std::vector<int> cpus = named_cpus(read_file(list), allowed);
    if (!cpus.empty()) nodes.push_back(std::move(cpus));
  }
  if (nodes.empty()) return {allowed};
  std::ranges::sort(nodes);
  return nodes;
}

std::vector<int> cpus_of_worker(const std::vector<std::vector<int>>& nodes, int slot, int threads) {
  std::size_t all = 0;
  for (const std::vector<int>& node : nodes) all += node.size();
  const auto each = static_cast<std::size_t>(std::max(1, threads));
  const std::vector<int>& node = nodes[static_cast<std::size_t>(slot) % nodes.size()];
  const bool is_even = all / each % nodes.size() == 0;
  return nodes.size() > 1 && is_even && each <= node.size() ? node : std::vector<int>{};
}

// An abstract socket address is a name in the kernel only, which disappears with its socket.
MachineSlot take_machine_slot() {
  for (int number = 0;; ++number) {
    FileDescriptor held(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("dtrain seat {}", number);
    std::ranges::copy(name, address.sun_path + 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (held && ::bind(held.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) {
      return {number, std::move(held)};
    }
    if (errno != EADDRINUSE) throw Error(fmt::format("cannot take a seat: {}", std::strerror(errno)));
  }
}

void keep_to_cpus(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw Error(fmt::format("cannot keep to {} processors: {}", cpus.size(), std::strerror(errno)));
  }
}

}  // namespace dtrain
