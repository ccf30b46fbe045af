// What this machine has: memory, GPUs, programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

std::string host_name();  // of this machine

// The same for all processes of one machine, or of one container or network namespace on it, since its boot, and for no
// others but copies of a machine's memory. It gives away nothing else of the machine. Empty where the kernel does not
// say.
std::string machine_identity();

// Bytes in a line of /proc/meminfo, such as "MemAvailable"; 0 where the kernel does not say. `root` is where /proc is.
std::uint64_t memory_info(std::string_view line, const Path& root = "/");

struct Memory {
  std::uint64_t total = 0, available = 0;  // bytes
};
// The memory of this machine, or less where a control group (version 1 or 2) limits this process to less. Zeros where
// the kernel does not say. `root` is where /proc and /sys are.
Memory usable_memory(const Path& root = "/");

bool is_on_ec2();  // by the vendor that the firmware names

// GPUs that the NVIDIA driver made a device file for (/dev/nvidia0, ...; a container has those of its GPUs only), as
// far as CUDA_VISIBLE_DEVICES leaves them to this process.
int nvidia_device_count();
// The same of the device files in `folder`, with that variable's value; nullopt: it is not set.
int nvidia_device_count(const Path& folder, const std::optional<std::string>& visible);

// A regular file that this process may execute.
bool is_program(const Path& file);

// The first program called `name` in a list of folders such as "/usr/bin:/bin"; an empty entry is the current folder.
[[nodiscard]] std::optional<Path> find_in_path(const std::string& name, const std::string& folders);

}  // namespace dtrain
