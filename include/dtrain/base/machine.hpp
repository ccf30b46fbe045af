// What this machine has: memory, GPUs, programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

std::string host_name();  // of this machine

// Bytes in a line of /proc/meminfo, such as "MemAvailable"; 0 where the kernel does not say.
std::uint64_t memory_info(std::string_view line);

bool is_on_ec2();  // by the vendor that the firmware names

// GPUs that the NVIDIA driver made a device file for: /dev/nvidia0, /dev/nvidia1, ...
int nvidia_device_count();

// A regular file that this process may execute.
bool is_program(const Path& file);

// The first program called `name` in a list of folders such as "/usr/bin:/bin"; an empty entry is the current folder.
[[nodiscard]] std::optional<Path> find_in_path(const std::string& name, const std::string& folders);

}  // namespace dtrain
