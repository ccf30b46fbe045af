#include "doctor_nvidia.hpp"

#include <filesystem>
#include <fstream>

#include <dtrain/base/machine.hpp>

namespace dtrain::doctor {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ..."
std::string kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return {};
}

}  // namespace

NvidiaFacts read_nvidia() {
  return {.has_device = nvidia_device_count("/dev", std::nullopt) > 0,
          .driver = kernel_driver(),
          .found = backend::look_for_cuda()};
}

}  // namespace dtrain::doctor
