#include "compute_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/comm/tree.hpp>

#include "gpu/gpu_choice.hpp"
#include "option_values.hpp"

namespace dtrain::config {

int ComputeOptions::samples_per_step() const {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (global_batch > 0) return global_batch;
  const std::int64_t of_all_hosts = std::int64_t{batch_size} * hosts;
  if (of_all_hosts <= most / accumulate) return static_cast<int>(of_all_hosts * accumulate);
  throw UsageError(fmt::format("--batch-size {}, {} host{} and --accumulate {}: a step would have more than {} samples",
                               batch_size, hosts, hosts == 1 ? "" : "s", accumulate, most),
                   "use a smaller batch, or accumulate fewer of them");
}

void set_machine_defaults(ComputeOptions& options) { options.threads = usable_cpus(); }

void bind_device(OptionSet& set, ComputeOptions& options, int most_gpus) {
  set_machine_defaults(options);
  set.group("Device");
  add_choice(
      set, "--device", options.device, kDeviceNames,
      "device that computes; cuda uses GPU 0 unless --gpus names others, auto uses the CPU unless --gpus is given");
  Option& gpus = set.add(
      "--gpus", options.gpus, "LIST",
      "numbers of the GPUs to use, such as 0 or 0,1; an empty list means the CPU. `train` starts one worker per GPU on "
      "every host, and these share --batch-size (default the first DEEPLEARNING_WORKER_GPU_COUNT GPUs, or the CPU)");
  gpus.without_value = "";
  gpus.comma_list = true;
  gpus.legacy_variable = "DEEPLEARNING_WORKER_GPU_COUNT";
  gpus.set_legacy = [&options, most_gpus](const std::string& text) {
    const int count = whole_number<int>(text, between(0, kMostGpus));
    options.gpus = options.device == Device::cpu ? "" : first_gpus(std::min(count, most_gpus));
  };
  set.add("--tf32", options.cuda.tf32,
          "on a GPU, use TF32 for float32 convolutions: faster, with mantissas of ten bits");
  set.add_custom(
         "--deterministic", "on|off",
         "on a GPU, on makes runs repeatable bit by bit; off lets convolutions and all-reduces add in any order, which "
         "is faster. Results on the CPU are always repeatable; `bench train` measures the cost",
         [&options](const std::string& text) { options.cuda.deterministic = yes_or_no(text, "on or off"); },
         [&options] { return std::string(options.cuda.deterministic ? "on" : "off"); })
      .without_value = "on";
  set.after_sources([&options](OptionSet& all) { let_stronger_device_decide(all, options); });
  set.add("--threads", options.threads, "N", "number of compute threads (default the CPUs available to this process)",
          kThreadRange)
      .by_machine = true;
  std::vector<std::string> dtypes = backend::dtype_names();
  dtypes.emplace_back("auto");
  set.add_choice("--dtype", options.dtype, std::move(dtypes),
                 "number format for computing; weights stay float32. auto takes the fastest format of the device");
}

void bind_batch(OptionSet& set, ComputeOptions& options) {
  set.group("Batches");
  set.add("--batch-size", options.batch_size, "N", "samples per step on each host", at_least(1));
  set.add("--global-batch", options.global_batch, "G",
          "samples per step over all hosts, which --accumulate divides into its batches; 0 for --batch-size times the "
          "number of hosts",
          at_least(0));
  set.add("--logical-shards", options.logical_shards, "V",
          "number of logical shards of a step, a power of two; each has its own batch norm (default 1 per worker; with "
          "--elastic 4 for each of --max-workers, as long as shards keep 16 samples)",
          at_least(1));
  set.add("--seed", options.seed, "N", "random seed for sample order, augmentation, dropout and initial weights");
}

void let_stronger_batch_decide(const OptionSet& set, ComputeOptions& options) {
  if (set.find("batch-size")->source > set.find("global-batch")->source) options.global_batch = 0;
}

void let_stronger_device_decide(OptionSet& set, ComputeOptions& options) {
  Option &device = *set.find("device"), &gpus = *set.find("gpus");
  const auto yield = [](Option& weaker, const Option& stronger) {
    weaker.source = stronger.source;
    weaker.origin = stronger.origin;
  };
  if (device.source > gpus.source && options.device == Device::cpu && !options.gpus.empty()) {
    options.gpus.clear();
    yield(gpus, device);
  }
  const Device other = options.gpus.empty() ? Device::cuda : Device::cpu;
  if (gpus.source > device.source && options.device == other) {
    options.device = options.gpus.empty() ? Device::cpu : Device::automatic;
    yield(device, gpus);
  }
}

std::string idle_gpu_note(const ComputeOptions& options, const backend::CudaReport& report) {
  if (gpu_of_slot(options, 0) || options.device == Device::cpu || !report.problem.empty()) return {};
  return fmt::format("training on the CPU; --device cuda trains on this machine's {}", report.gpus.front().name);
}

std::unique_ptr<backend::Backend> choose_backend(const ComputeOptions& options) {
  if (named_gpus(options).size() > 1) {
    throw UsageError(fmt::format("--gpus {}: one process computes on one GPU", options.gpus),
                     "name one of them; only `dtrain train` uses several, with one worker per GPU");
  }
  return backend_of_worker(options, 0);
}

static void refuse_options_of_gpus(const backend::CudaOptions& cuda) {
  const char* const option = cuda.tf32                                          ? "--tf32"
                             : cuda.plans_to_time > 0                           ? "--time-plans"
                             : !cuda.fuses                                      ? "--join-passes 0"
                             : cuda.own_products == backend::OwnProducts::first ? "--own-products first"
                                                                                : nullptr;
  if (!option) return;
  throw UsageError(fmt::format("{}: this option applies to GPUs, and the CPU is selected", option),
                   "select a GPU with --device cuda or --gpus, or leave it out");
}

std::unique_ptr<backend::Backend> backend_of_worker(const ComputeOptions& options, int slot) {
  const std::optional<int> gpu = gpu_of_slot(options, slot);
  if (!gpu) refuse_options_of_gpus(options.cuda);
  return gpu ? backend::make_cuda_backend(*gpu, options.cuda) : backend::make_cpu_backend();
}

backend::DType choose_dtype(const ComputeOptions& options, const backend::Backend& backend) {
  if (options.dtype == "auto") return backend.fastest_dtype();
  const backend::DType dtype = backend::parse_dtype(options.dtype);
  if (const char* why = backend.why_not(dtype)) {
    throw UsageError(fmt::format("--dtype {}: {}", options.dtype, why),
                     "--dtype auto selects the fastest format that the device supports");
  }
  return dtype;
}

void suit_evaluation_of_detector(const OptionSet& set, ComputeOptions& options) {
  if (!set.chosen("batch-size")) options.batch_size = kDetectorBatch;
}

int largest_shard(const ComputeOptions& options) {
  const std::int64_t samples = options.samples_per_step(), shards = options.logical_shards;
  return static_cast<int>((samples + shards - 1) / shards);
}

backend::CompileOptions compile_options(const ComputeOptions& options, backend::DType dtype, int top_k) {
  const int shards = options.logical_shards;
  const bool alone = shards == 1;
  return {.dtype = dtype,
          .lanes = alone ? 1 : std::min(options.threads, shards),
          .threads_per_lane = alone ? options.threads : 1,
          .max_samples = largest_shard(options),
          .top_k = top_k > 0 ? top_k : 5,
          .training = true};
}

void check_shards(const ComputeOptions& options) {
  const int shards = options.logical_shards;
  if (!comm::is_power_of_two(shards)) {
    throw UsageError(fmt::format("--logical-shards: must be a power of two, not {}", shards),
                     fmt::format("the next power of two is {}", comm::power_of_two_at_least(shards)));
  }
  if (shards > options.samples_per_step()) {
    throw UsageError(fmt::format("--logical-shards: {} shards are more than the {} samples of a step", shards,
                                 options.samples_per_step()),
                     "use fewer shards or a larger batch");
  }
}

std::string efficiency_line(int shards) {
  constexpr int kMostWorkers = 8;
  std::string text = "efficiency on N workers:";
  for (int workers = 1; workers <= std::min(shards, kMostWorkers); ++workers) {
    const int rounds = (shards + workers - 1) / workers;
    text += fmt::format("{} {}: {:.0f} %", workers > 1 ? "," : "", workers, 100.0 * shards / (workers * rounds));
  }
  return text;
}

}  // namespace dtrain::config
