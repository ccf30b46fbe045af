#include "gpu_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

int gpu_from(std::string_view word, const std::string& list) {
  int gpu = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gpu);
  if (error == std::errc{} && end == word.data() + word.size() && gpu >= 0) return gpu;
  throw UsageError(fmt::format("--gpus {}: '{}' is not the number of a GPU", list, word),
                   "write numbers, as in --gpus 0 or --gpus 0,1");
}

// "0,2" -> {0, 2}.
std::vector<int> parse_gpus(const std::string& list) {
  std::vector<int> gpus;
  std::string_view rest = list;
  while (!rest.empty()) {
    const int gpu = gpu_from(rest.substr(0, rest.find(',')), list);
    if (std::ranges::find(gpus, gpu) != gpus.end()) {
      throw UsageError(fmt::format("--gpus {}: GPU {} is named twice", list, gpu), "each GPU has one worker");
    }
    gpus.push_back(gpu);
    rest.remove_prefix(std::min(rest.size(), rest.find(',')));
    if (rest == ",") gpu_from({}, list);
    rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));
  }
  return gpus;
}

std::string gpus_of(const backend::CudaReport& report) {
  const std::size_t count = report.gpus.size();
  return count == 1 ? "GPU 0 only" : fmt::format("GPUs 0 to {}", count - 1);
}

}  // namespace

std::vector<int> named_gpus(const ComputeOptions& options) {
  std::vector<int> gpus = parse_gpus(options.gpus);
  if (options.device == Device::cpu && !gpus.empty()) {
    throw UsageError(fmt::format("--device cpu and --gpus {} exclude each other", options.gpus),
                     "leave one of them out");
  }
  return gpus;
}

std::string first_gpus(int count) {
  std::string list;
  for (int gpu = 0; gpu < count; ++gpu) list += fmt::format("{}{}", gpu > 0 ? "," : "", gpu);
  return list;
}

std::optional<int> gpu_of_slot(const ComputeOptions& options, int slot) {
  const std::vector<int> gpus = named_gpus(options);
  if (gpus.empty()) return options.device == Device::cuda ? std::optional<int>(slot) : std::nullopt;
  if (slot < static_cast<int>(gpus.size())) return gpus[static_cast<std::size_t>(slot)];
  throw UsageError(
      fmt::format("worker {} of this host has no GPU: --gpus {} names {}", slot, options.gpus, gpus.size()),
      "lower slots= of the host, or name more GPUs in --gpus");
}

int workers_of_host(const ComputeOptions& options) { return std::max(1, static_cast<int>(named_gpus(options).size())); }

int batch_of_worker(const ComputeOptions& options) {
  const int workers = workers_of_host(options);
  if (options.batch_size % workers == 0) return options.batch_size / workers;
  throw UsageError(fmt::format("--batch-size {}: {} GPUs cannot share it evenly", options.batch_size, workers),
                   fmt::format("use a multiple of {}", workers));
}

void check_gpus_of_machine(const std::vector<int>& gpus, const backend::CudaReport& report) {
  if (gpus.empty()) return;
  if (!report.problem.empty()) throw UsageError(report.problem, report.hint);
  for (const int gpu : gpus) {
    if (gpu < static_cast<int>(report.gpus.size())) {
      const std::string& problem = report.gpus[static_cast<std::size_t>(gpu)].problem;
      if (problem.empty()) continue;
      throw UsageError(problem, backend::hint_for_old_gpus());
    }
    throw UsageError(fmt::format("--gpus: GPU {} does not exist: this machine has {}", gpu, gpus_of(report)),
                     "nvidia-smi lists them");
  }
}

void check_slots(const ComputeOptions& options, const elastic::HostList& hosts) {
  const int gpus = static_cast<int>(named_gpus(options).size());
  if (gpus == 0) return;
  for (const elastic::HostLine& host : hosts.hosts) {
    if (host.slots <= gpus) continue;
    throw UsageError(
        fmt::format("{} slots={}: --gpus {} names {}, and each worker needs one", host.name, host.slots, options.gpus,
                    gpus == 1 ? "one GPU" : fmt::format("{} GPUs", gpus)),
        "lower slots= in the host file (with --resume, in host_worker, or add --reset-hosts), or name more GPUs");
  }
}

}  // namespace dtrain::config
