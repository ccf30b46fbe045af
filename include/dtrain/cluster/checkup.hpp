// What a node measures when its head asks: its GPUs, as nvidia-smi reports them, and its clock.
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
  std::optional<int> celsius{};              // nullopt, here and below: not reported
  std::optional<std::int64_t> memory_mib{};  // total
  std::optional<std::int64_t> ecc_errors{};  // uncorrected, since the driver was loaded
  std::string complaint{};                   // what nvidia-smi wrote in place of a value: "[GPU requires reset]"
};

struct Checkup {
  int devices = 0;  // made by the kernel's driver
  std::vector<GpuFacts> gpus{};
  std::string gpu_error{};  // why nvidia-smi reported none; empty: there is no NVIDIA device or driver
};

// Runs nvidia-smi if it or a device exists, for at most `patience`. Failures are part of the result; nothing is thrown.
Checkup look_at_gpus(std::chrono::milliseconds patience);
// Parses what nvidia-smi prints for the query of look_at_gpus(). Pure. Throws DataError.
std::vector<GpuFacts> gpus_in(std::string_view csv);
// The problems of a machine whose type has this many GPUs; nullopt: the number is unknown.
std::vector<std::string> gpu_troubles(const Checkup& checkup, std::optional<int> expected);

Json to_json(const Checkup& checkup);
Checkup checkup_from_json(const Json& json);  // throws DataError

// A node's clock minus the head's, in seconds, with its uncertainty.
struct ClockOffset {
  double seconds = 0, within = 0;
  bool is_wrong() const;  // true: the clocks differ by more than a second even within the uncertainty
};
// The head's clock when it asked and when the answer came, the node's clock when it was asked, and how long the node
// took to answer; all in nanoseconds.
ClockOffset clock_offset(std::int64_t asked, std::int64_t heard, std::int64_t node_clock, std::int64_t took);

}  // namespace dtrain::cluster
