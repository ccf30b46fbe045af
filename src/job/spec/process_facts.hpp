// Facts about this process and machine from the kernel.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dtrain/base/machine.hpp>

namespace dtrain::job {

using dtrain::host_name;
std::uint64_t peak_memory_bytes();                // VmHWM; 0: /proc does not have it
std::chrono::duration<double> time_since_exec();  // to about 10 ms; 0: /proc does not have it

}  // namespace dtrain::job
