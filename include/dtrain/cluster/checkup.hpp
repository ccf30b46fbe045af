// What a node measures by itself, and when its head asks: its GPUs, as nvidia-smi reports them, its disks, its clock,
// and whether EC2 is about to end it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/net/instance_metadata.hpp>

namespace dtrain::cluster {

struct GpuFacts {
  int number = 0;
  std::string name{}, driver{};
  std::optional<int> celsius{};              // nullopt, here and below: not reported
  std::optional<std::int64_t> memory_mib{};  // total
  std::optional<std::int64_t> ecc_errors{};  // uncorrected, since the driver was loaded
  bool remap_failed = false;                 // faulty memory could not be replaced by spare rows
  std::string recovery{};                    // "Reset", "Reboot", ...: what the driver asks for; empty: nothing
  std::string complaint{};                   // what nvidia-smi wrote in place of a value: "[GPU requires reset]"
};

struct DiskFacts {
  std::string path{};
  std::uint64_t bytes = 0, free_bytes = 0;  // free for users that are not root
  std::uint64_t files = 0, free_files = 0;  // 0, 0: the file system has no limit of files
};

struct Checkup {
  int devices = 0;  // made by the kernel's driver
  std::vector<GpuFacts> gpus{};
  std::string gpu_error{};  // why nvidia-smi reported none; empty: there is no NVIDIA device or driver
  std::vector<DiskFacts> disks{};
  std::optional<net::EndNotice> notice{};
};

// Runs nvidia-smi if it or a device exists, for at most `patience`. Failures are part of the result; nothing is thrown.
Checkup look_at_gpus(std::chrono::milliseconds patience);
// The file systems of the machine that programs write to, each once.
std::vector<DiskFacts> look_at_disks();
// Parses what nvidia-smi prints for the query of look_at_gpus(). Pure. Throws DataError.
std::vector<GpuFacts> gpus_in(std::string_view csv);
// The problems of a machine whose type has this many GPUs; nullopt: the number is unknown.
std::vector<std::string> gpu_troubles(const Checkup& checkup, std::optional<int> expected);
// The same, and those of its disks. A notice of its end is no problem of the machine.
std::vector<std::string> troubles_of(const Checkup& checkup, std::optional<int> gpus_expected);

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
