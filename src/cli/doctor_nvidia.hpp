// NVIDIA's driver and libraries as far as they can be loaded here; nothing is linked.
#pragma once

#include <string>
#include <vector>

namespace dtrain::cli {

struct NvidiaFacts {
  bool has_device = false;               // the kernel's driver made /dev/nvidia0
  std::string driver;                    // of the kernel's driver, "535.104.05"; empty: none is loaded
  std::string driver_error;              // why libcuda.so.1 cannot be used; empty: it can
  int cuda = 0;                          // newest CUDA that the driver serves: 12020 for 12.2
  std::vector<std::string> gpus;         // names
  int runtime = 0, cudnn = 0, nccl = 0;  // versions of the libraries; 0: not found
};

NvidiaFacts read_nvidia();

// "12.2" of 12020, "8.9.2" of 8902, "2.18.3" of 21803.
std::string cuda_version(int number);
std::string cudnn_version(int number);
std::string nccl_version(int number);

}  // namespace dtrain::cli
