#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/checkup.hpp>

#include "gpu_query.hpp"

namespace dtrain::cluster {
namespace {

constexpr double kNanoseconds = 1e9, kMostOffset = 1.0;
// A disk is full with less than a hundredth of it free, or less than this.
constexpr std::uint64_t kFewBytes = 256 << 20, kShare = 100;

// "[N/A]" and "[Not Supported]" mean no value; any other text in brackets is a complaint.
bool tells_nothing(std::string_view word) {
  return word == "[N/A]" || word == "N/A" || word == "[Not Supported]" || word.empty();
}

std::optional<std::int64_t> number_in(const std::string& word, GpuFacts& gpu) {
  const auto number = parse_integer(word);
  if (!number && !tells_nothing(word)) gpu.complaint = word;
  return number;
}

GpuFacts gpu_in(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line, ',')) words.emplace_back(trim(word));
  constexpr std::size_t kAll = kGpuFields.size() + kErrorFields.size();
  const bool has_all = words.size() == kAll;
  const auto number = has_all || words.size() == kGpuFields.size() ? parse_integer(words[0]) : std::nullopt;
  if (!number) throw DataError(fmt::format("nvidia-smi wrote '{}'", line));
  GpuFacts gpu{.number = static_cast<int>(*number), .name = words[1], .driver = words[2]};
  if (const auto celsius = number_in(words[3], gpu)) gpu.celsius = static_cast<int>(*celsius);
  gpu.memory_mib = number_in(words[4], gpu);
  gpu.ecc_errors = number_in(words[5], gpu);
  if (!has_all) return gpu;
  gpu.remap_failed = words[6] == "1" || words[6] == "Yes";
  if (!tells_nothing(words[7]) && words[7] != "None") gpu.recovery = words[7];
  return gpu;
}

template <typename Number>
Json or_null(const std::optional<Number>& number) {
  return number ? Json(std::int64_t{*number}) : Json();
}

std::optional<std::int64_t> number_or_null(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.as_integer());
}

std::string disk_trouble(const DiskFacts& disk) {
  if (disk.free_bytes < std::min(disk.bytes / kShare, kFewBytes)) {
    return fmt::format("the disk of {} is full: {} of {} are free", disk.path, format_bytes(disk.free_bytes),
                       format_bytes(disk.bytes));
  }
  if (disk.free_files < disk.files / kShare) {
    return fmt::format("the disk of {} takes hardly any more files: {} of {} are left", disk.path, disk.free_files,
                       disk.files);
  }
  return {};
}

Json to_json(const DiskFacts& disk) {
  return Json::object({{"path", disk.path},
                       {"bytes", disk.bytes},
                       {"free_bytes", disk.free_bytes},
                       {"files", disk.files},
                       {"free_files", disk.free_files}});
}

DiskFacts disk_from(const Json& json) {
  const auto count = [&](const char* key) { return static_cast<std::uint64_t>(json.at(key).as_integer()); };
  return {json.at("path").as_string(), count("bytes"), count("free_bytes"), count("files"), count("free_files")};
}

GpuFacts gpu_from(const Json& one) {
  GpuFacts gpu{.number = static_cast<int>(one.at("number").as_integer()),
               .name = one.at("name").as_string(),
               .driver = one.at("driver").as_string(),
               .memory_mib = number_or_null(one.at("memory_mib")),
               .ecc_errors = number_or_null(one.at("ecc_errors")),
               .complaint = one.at("complaint").as_string()};
  if (const auto celsius = number_or_null(one.at("celsius"))) gpu.celsius = static_cast<int>(*celsius);
  if (const Json* failed = one.find("remap_failed")) gpu.remap_failed = failed->as_bool();
  if (const Json* recovery = one.find("recovery")) gpu.recovery = recovery->as_string();
  return gpu;
}

}  // namespace

std::vector<GpuFacts> gpus_in(std::string_view csv) {
  std::vector<GpuFacts> gpus;
  for (const std::string& line : split(csv, '\n')) {
    if (!trim(line).empty()) gpus.push_back(gpu_in(line));
  }
  return gpus;
}

std::vector<std::string> gpu_troubles(const Checkup& checkup, std::optional<int> expected) {
  std::vector<std::string> troubles;
  // In a cluster with GPUs, machines without one have an image with nvidia-smi, which fails there.
  const bool has_none = expected == 0 && checkup.devices == 0;
  if (!checkup.gpu_error.empty() && !has_none) troubles.push_back(checkup.gpu_error);
  const int seen = static_cast<int>(checkup.gpus.size()), wanted = std::max(expected.value_or(0), checkup.devices);
  if (seen < wanted) troubles.push_back(fmt::format("{} of {} GPUs are seen", seen, wanted));
  for (const GpuFacts& gpu : checkup.gpus) {
    if (!gpu.complaint.empty()) troubles.push_back(fmt::format("GPU {}: {}", gpu.number, gpu.complaint));
    if (!gpu.recovery.empty()) {
      troubles.push_back(fmt::format("GPU {}: its driver asks for '{}' after an error", gpu.number, gpu.recovery));
    }
    if (gpu.remap_failed) troubles.push_back(fmt::format("GPU {}: faulty memory could not be replaced", gpu.number));
    if (gpu.ecc_errors.value_or(0) > 0) {
      troubles.push_back(fmt::format("GPU {}: {} uncorrected memory errors", gpu.number, *gpu.ecc_errors));
    }
  }
  return troubles;
}

std::vector<std::string> troubles_of(const Checkup& checkup, std::optional<int> gpus_expected) {
  std::vector<std::string> troubles = gpu_troubles(checkup, gpus_expected);
  for (const DiskFacts& disk : checkup.disks) {
    if (std::string trouble = disk_trouble(disk); !trouble.empty()) troubles.push_back(std::move(trouble));
  }
  return troubles;
}

Json to_json(const Checkup& checkup) {
  Json gpus = Json::array();
  for (const GpuFacts& gpu : checkup.gpus) {
    gpus.push_back(Json::object({{"number", gpu.number},
                                 {"name", gpu.name},
                                 {"driver", gpu.driver},
                                 {"celsius", or_null(gpu.celsius)},
                                 {"memory_mib", or_null(gpu.memory_mib)},
                                 {"ecc_errors", or_null(gpu.ecc_errors)},
                                 {"remap_failed", gpu.remap_failed},
                                 {"recovery", gpu.recovery},
                                 {"complaint", gpu.complaint}}));
  }
  Json disks = Json::array();
  for (const DiskFacts& disk : checkup.disks) disks.push_back(to_json(disk));
  const auto& notice = checkup.notice;
  return Json::object(
      {{"devices", checkup.devices},
       {"gpus", std::move(gpus)},
       {"gpu_error", checkup.gpu_error},
       {"disks", std::move(disks)},
       {"notice", notice ? Json::object({{"final", notice->is_final}, {"text", notice->text}}) : Json()}});
}

// Nodes of earlier versions report no disks and no notice.
Checkup checkup_from_json(const Json& json) {
  Checkup checkup{.devices = static_cast<int>(json.at("devices").as_integer()),
                  .gpu_error = json.at("gpu_error").as_string()};
  for (const Json& one : json.at("gpus").as_array()) checkup.gpus.push_back(gpu_from(one));
  if (const Json* disks = json.find("disks")) {
    for (const Json& one : disks->as_array()) checkup.disks.push_back(disk_from(one));
  }
  if (const Json* notice = json.find("notice"); notice && !notice->is_null()) {
    checkup.notice = net::EndNotice{notice->at("final").as_bool(), notice->at("text").as_string()};
  }
  return checkup;
}

bool ClockOffset::is_wrong() const { return std::abs(seconds) - within > kMostOffset; }

// Assumes, as NTP does, that the way to the node and the way back take equally long.
ClockOffset clock_offset(std::int64_t asked, std::int64_t heard, std::int64_t node_clock, std::int64_t took) {
  const double on_the_way = static_cast<double>(std::max<std::int64_t>(heard - asked - took, 0)) / 2;
  return {(static_cast<double>(node_clock - asked) - on_the_way) / kNanoseconds, on_the_way / kNanoseconds};
}

}  // namespace dtrain::cluster
