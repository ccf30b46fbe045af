// Which GPUs dtrain trains on: the one list, for the backend, `doctor`, `cluster` and examples/gpus.md.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

struct Capability {
  int major = 0, minor = 0;
  friend auto operator<=>(const Capability&, const Capability&) = default;
};
constexpr Capability kLeastCapability{8, 0};  // kernels are compiled for it and for what is newer
constexpr int kLeastDriver = 580;             // NVIDIA's first for CUDA 13

// A GPU of a data centre.
struct GpuModel {
  std::string_view name;       // as EC2 calls it: "A10G"
  Capability capability;       // {}: none, it is not NVIDIA's
  std::string_view instances;  // families of EC2 types that have it, apart by blanks
  bool trains() const { return capability >= kLeastCapability; }
};

constexpr GpuModel kGpuModels[] = {
    {"Radeon Pro V520", {0, 0}, "g4ad"},
    {"K80", {3, 7}, "p2"},
    {"M60", {5, 2}, "g3 g3s"},
    {"P100", {6, 0}, ""},
    {"V100", {7, 0}, "p3 p3dn"},
    {"T4", {7, 5}, "g4dn"},
    {"T4g", {7, 5}, "g5g"},
    {"A100", {8, 0}, "p4d p4de"},
    {"A10G", {8, 6}, "g5"},
    {"L4", {8, 9}, "g6 gr6"},
    {"L40S", {8, 9}, "g6e"},
    {"H100", {9, 0}, "p5"},
    {"H200", {9, 0}, "p5e p5en"},
    {"B200", {10, 0}, "p6-b200"},
};

std::string text_of(Capability capability);         // "8.0"
Capability capability_from(std::string_view text);  // {} for what is no such text
// nullptr: not in the list.
const GpuModel* gpu_model(std::string_view name);
const GpuModel* gpu_model_of_instance(std::string_view type);  // "g5.xlarge"
std::string models_that_train();                               // "A100, A10G, ... and B200", for hints

}  // namespace dtrain
