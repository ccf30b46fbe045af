// What the kernel knows of this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dtrain::job {

std::string host_name();                          // of this machine
std::uint64_t peak_memory_bytes();                // VmHWM; 0 where /proc does not say
std::chrono::duration<double> time_since_exec();  // to about 10 ms; 0 where /proc does not say

}  // namespace dtrain::job
