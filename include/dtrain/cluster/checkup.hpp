// How a node finds itself when its head asks: its GPUs, as nvidia-smi tells of them, and its clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

struct GpuFacts {
  int number = 0;
  std::string name{}, driver{};
  std::optional<int> celsius{};              // nullopt, here and below: it does not tell
  std::optional<std::int64_t> memory_mib{};  // all of it
  std::optional<std::int64_t> ecc_errors{};  // uncorrected, since the driver was loaded
  std::string complaint{};                   // what nvidia-smi wrote in place of a value: "[GPU requires reset]"
};

struct Checkup {
  int devices = 0;  // that the kernel's driver made
  std::vector<GpuFacts> gpus{};
  std::string gpu_error{};  // why nvidia-smi told of none; empty where there is nothing of NVIDIA's
};

// Starts nvidia-smi, where it or a device is there, and gives it so long. Never throws for what it finds.
Checkup look_at_gpus(std::chrono::milliseconds patience);
// Pure: what nvidia-smi prints when it is asked as look_at_gpus() does. Throws DataError.
std::vector<GpuFacts> gpus_in(std::string_view csv);
// What is wrong on a machine of a type with so many GPUs; nullopt: nobody knows how many those are.
std::vector<std::string> gpu_troubles(const Checkup& checkup, std::optional<int> expected);

Json to_json(const Checkup& checkup);
Checkup checkup_from_json(const Json& json);  // throws DataError

// A node's clock minus the head's, in seconds, which is certain to within so much.
struct ClockOffset {
  double seconds = 0, within = 0;
  bool is_wrong() const;  // for certain, and by more than a second
};
// The head's clock when it asked and when it heard, the node's when it was asked, and how long it took to answer; all
// in nanoseconds.
ClockOffset clock_offset(std::int64_t asked, std::int64_t heard, std::int64_t node_clock, std::int64_t took);

}  // namespace dtrain::cluster
