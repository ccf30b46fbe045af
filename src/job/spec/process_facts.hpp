// Facts about this process and machine from the kernel.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dtrain::job {

std::string host_name();                          // of this machine
std::uint64_t peak_memory_bytes();                // VmHWM; 0: /proc does not have it
std::chrono::duration<double> time_since_exec();  // to about 10 ms; 0: /proc does not have it

}  // namespace dtrain::job
